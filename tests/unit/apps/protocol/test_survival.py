"""What of a program's changes a folder has: compared with all folders that any of the changes could make."""

from dataclasses import replace
from itertools import combinations

import pytest

from postcrash.apps.folder import Folder
from postcrash.apps.protocol import Prefixes, Protocol, Survival, UnorderedError
from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import NameSlot
from postcrash.model import Entry, Tree

from ..conftest import Traced

pytestmark = pytest.mark.slow

PROGRAMS = (
    "put('a', 'one')\nput('b', 'two')",
    "put('a', 'x' * 5000)\nput('a', 'y' * 10, 5000)",
    "put('a', 'new')\nput('b', 'x')\nos.rename('a', 'b')",
    "os.mkdir('d')\nput('d/a', 'one')\nos.rename('d', 'e')\nos.unlink('e/a')",
    "put('a', 'one')\nos.link('a', 'b')\nos.unlink('a')\nput('a', 'two')",
    "put('a', 'x' * 6000)\nos.truncate('a', 100)\nput('a', 'z', 4096)",
    "put('a', 'one')\nput('a', 'two')\nput('a', 'six')",
    "os.mkfifo('p'); os.rename('p', 'q')",
    "os.symlink('x', 'l')\nos.rename('l', 'm')\nput('a', '')",
)


def digest(tree: Tree) -> str:
    return Folder.of(Tree([replace(entry, mode=0) for entry in tree.values()])).digest


def states(protocol: Protocol) -> list[tuple[frozenset[int], Tree]]:
    """Each set of changes, with the folder that has just these."""
    slots, count = Slots(protocol), len(protocol.changes)
    sets = (frozenset(some) for size in range(count + 1) for some in combinations(range(count), size))
    return [(some, State(slots, count, some).tree) for some in sets]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_lost_is_what_no_folder_with_these_changes_shows(traced: Traced, program: str) -> None:
    protocol = traced(program)
    survival, known = Survival(protocol), states(protocol)
    asked = 0
    for end in {step.first for step in protocol.steps} | {len(protocol.changes)}:
        allowed = {digest(tree) for some, tree in known if some.issuperset(range(end))}
        for _, tree in known:
            assert (survival.lost(tree, end) is None) == (digest(tree) in allowed)
            asked += 1
    assert asked > 8


@pytest.mark.parametrize("program", PROGRAMS)
def test_prefixes_are_what_the_first_steps_make(traced: Traced, program: str) -> None:
    protocol = traced(program)
    prefixes, slots = Prefixes(protocol), Slots(protocol)
    whole = {0: set[int](), **{step.number + 1: set(range(step.end)) for step in protocol.steps}}
    made = {count: State(slots, len(some), frozenset(some)).tree for count, some in whole.items()}
    for count, tree in made.items():
        longest = prefixes.longest(tree)
        assert longest is not None
        assert longest >= count
        assert digest(made[longest]) == digest(tree)


def test_a_later_change_without_an_earlier_one_is_no_prefix(traced: Traced) -> None:
    protocol = traced("put('a', 'one')\nput('b', 'two')")
    without = [change.index for change in protocol.changes if change.step >= 2]
    tree = State(Slots(protocol), len(protocol.changes), frozenset(without)).tree
    assert "b" in tree
    assert "a" not in tree
    assert Prefixes(protocol).longest(tree) is None


@pytest.mark.parametrize(("blocks", "is_prefix"), [((0,), True), ((0, 1), True), ((1,), False), ((0, 2), False)])
def test_a_write_is_made_from_its_beginning(traced: Traced, blocks: tuple[int, ...], is_prefix: bool) -> None:
    protocol = traced("put('a', 'x' * 12288, flags=os.O_WRONLY)", before="put('a', 'y' * 12288)")
    tree = State(Slots(protocol), len(protocol.changes), frozenset(blocks)).tree
    assert len(protocol.changes) == 3
    assert (Prefixes(protocol).longest(tree) is not None) == is_prefix


STORES = "f = put('a', 'y' * 4096 * COUNT, flags=os.O_RDWR | os.O_CREAT)\nm = mmap.mmap(f, 4096 * COUNT)\n"


def test_stores_to_a_mapping_have_no_order(traced: Traced) -> None:
    protocol = traced(STORES.replace("COUNT", "3") + "m[:] = b'x' * 12288\nprint(flush=True)")
    first = next(step.first for step in protocol.steps if step.call == "store")
    only_last = frozenset([*range(first), first + 2])
    assert Prefixes(protocol).longest(State(Slots(protocol), first + 3, only_last).tree) is not None


def test_too_many_stores_are_not_tried(traced: Traced) -> None:
    protocol = traced(STORES.replace("COUNT", "20") + "m[:] = b'x' * 81920\nprint(flush=True)")
    with pytest.raises(UnorderedError, match="store changes 20 blocks"):
        Prefixes(protocol).longest(Tree([]))


def test_a_socket_has_a_name_and_nothing_else(traced: Traced) -> None:
    protocol = traced("import socket; s = socket.socket(socket.AF_UNIX); s.bind('s')")
    (change,) = protocol.changes
    with_it, without = Tree([Entry(".", "dir"), Entry("s", "socket")]), Tree([Entry(".", "dir")])
    survival = Survival(protocol)
    assert survival.lost(with_it, 1) is None
    assert survival.lost(without, 0) is None
    assert survival.lost(without, 1) == change.slot
    assert survival.lost(Tree([Entry(".", "dir"), Entry("s", "file")]), 1) == change.slot


def test_the_step_that_made_what_is_lost(traced: Traced) -> None:
    protocol = traced("put('a', 'one')\nput('b', 'two')")
    survival = Survival(protocol)
    first = protocol.steps[0]
    lost = survival.lost(State(Slots(protocol), first.end, frozenset()).tree, len(protocol.changes))
    assert isinstance(lost, NameSlot)
    assert survival.maker(lost, len(protocol.changes)) == first


def test_a_folder_of_before_that_later_values_could_mix_to_misses_a_step(traced: Traced) -> None:
    """Byte by byte the first content is one of the second and the third."""
    protocol = traced("put('a', 'AB')\nput('a', 'AA')\nput('a', 'BB')")
    second = next(step for step in protocol.steps if step.number and step.call == "pwrite64" and step.first == 3)
    tree = State(Slots(protocol), second.first, frozenset(range(second.first))).tree
    assert Survival(protocol).lost(tree, second.end) is None
    assert Prefixes(protocol).missing(tree, second.end) == second
    assert Prefixes(protocol).missing(tree, second.first) is None


def test_a_socket_that_is_there_is_not_lost(traced: Traced) -> None:
    protocol = traced("import socket\nsocket.socket(socket.AF_UNIX).bind('s')")
    end = len(protocol.changes)
    assert end
    assert Survival(protocol).lost(Tree([Entry(".", "dir"), Entry("s", "socket")]), end) is None
    assert Survival(protocol).lost(Tree([Entry(".", "dir"), Entry("s", "fifo")]), end) is not None


def test_extended_attributes_are_not_compared(traced: Traced) -> None:
    protocol = traced("put('a', 'one')")
    tree = State(Slots(protocol), len(protocol.changes), frozenset(range(len(protocol.changes)))).tree
    marked = Tree([replace(entry, xattrs=(("user.a", "31"),)) for entry in tree.values()])
    assert Prefixes(protocol).longest(marked) == len(protocol.steps)


def test_a_write_of_zeros_may_be_there_in_part(traced: Traced) -> None:
    protocol = traced("put('a', chr(0) * 12288)")
    sizes = [change.index for change in protocol.changes if change.value in (4096, 8192)]
    assert len(sizes) == 2
    tree = State(Slots(protocol), len(protocol.changes), frozenset(range(sizes[0] + 1))).tree
    assert tree["a"].size == 4096
    assert Prefixes(protocol).longest(tree) is not None
    assert Survival(protocol).lost(tree, protocol.changes[sizes[0]].index) is None


def test_what_only_a_change_that_may_not_have_been_made_excuses_is_in_doubt(traced: Traced) -> None:
    protocol = traced("put('f', 'new')\nprint('created', flush=True)\nos.unlink('f')\nput('g', 'x')")
    prefixes, slots = Prefixes(protocol), Slots(protocol)
    created = next(step.first for step in protocol.steps if step.outputs)
    removed = next(step for step in protocol.steps if step.call == "unlink")
    states = {count: State(slots, count, frozenset(range(count))).tree for count in range(len(protocol.changes) + 1)}
    doubt = prefixes.doubtful(states[0], created)
    assert doubt is not None
    assert (doubt[0].number, doubt[1].number) == (0, removed.number)
    # Before the output nothing is asked, what it rests on is there, or something later is there as well.
    assert prefixes.doubtful(states[0], 0) is None
    assert prefixes.doubtful(states[created], created) is None
    assert prefixes.doubtful(states[len(protocol.changes)], created) is None
    # An output behind the removal rests on it.
    assert prefixes.doubtful(states[0], removed.end) is None
