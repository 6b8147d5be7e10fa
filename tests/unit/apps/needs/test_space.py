"""The folders of a space are those of brute force: every set of durable changes, before every step."""

from itertools import chain, combinations

import pytest

from postcrash.apps.needs import ASSUMPTIONS
from postcrash.apps.needs.assumptions import Implication, implications_of, implications_with
from postcrash.apps.needs.space import Moment, Properties, Space, moments
from postcrash.apps.protocol import Protocol
from postcrash.apps.protocol.states import Slots, State

from ..conftest import Traced

pytestmark = pytest.mark.slow

PROGRAMS = [
    "put('a.new', 'x' * 10); os.rename('a.new', 'a'); print(1, flush=True)",
    "f = put('b', 'x' * 5000); os.fsync(f); print(1, flush=True); os.unlink('a'); put('b', 'y', 4999)",
    "put('b', ''); put('c', 'y'); os.unlink('b'); put('b', 'z')",
    "put('a', 'zz', 3); os.truncate('a', 1); put('a', 'y', 8); sync('.')",
]
BEFORE = "put('a', 'old')"


def all_folders(protocol: Protocol, names: tuple[str, ...]) -> set[tuple[str, tuple[str, ...]]]:
    """Digests of folders, with what had been said, of each set of changes that breaks no implication at some moment."""
    slots, known = Slots(protocol), implications_with(protocol, names)
    found = set()
    said: tuple[str, ...] = ()
    steps = [(step.number, step.end, step.outputs) for step in protocol.steps]
    for number, end, says in [*steps, (len(protocol.steps), len(protocol.changes), ())]:
        for durable in chain.from_iterable(combinations(range(end), n) for n in range(end + 1)):
            if all(keeps(slots, implication, set(durable), number, end) for implication in known):
                found.add((State(slots, end, frozenset(durable)).folder.digest, said))
        said += says
    return found


def keeps(slots: Slots, implication: Implication, durable: set[int], number: int, end: int) -> bool:
    if implication.returned is not None and implication.returned >= number:
        return True
    if not implication.durable <= durable:
        return True
    return all(is_kept(slots, index, durable) for index in implication.then if index < end)


def is_kept(slots: Slots, index: int, durable: set[int]) -> bool:
    slot = slots.protocol.changes[index].slot
    return any(each.index in durable for each in slots.of(slot) if each.index >= index)


def searched(protocol: Protocol, names: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    slots, known = Slots(protocol), implications_with(protocol, names)
    return [
        (state.folder.digest, moment.outputs)
        for moment in moments(protocol, known)
        for state in Space(slots, moment, known).states()
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_space_has_the_folders_of_brute_force(traced: Traced, program: str) -> None:
    protocol = traced(program, BEFORE)
    assert len(protocol.changes) <= 9
    different = set()
    for names in [(), *((each.name,) for each in ASSUMPTIONS)]:
        found = searched(protocol, names)
        assert set(found) == all_folders(protocol, names), names
        different.add(frozenset(found))
    assert len(different) > 3


def test_levels_come_before_the_rest_and_what_is_not_seen_does_not_count(traced: Traced) -> None:
    protocol = traced(PROGRAMS[2], BEFORE)
    slots, end = Slots(protocol), len(protocol.changes)
    moment = Moment(len(protocol.steps), end, ())
    implications = implications_with(protocol, ())
    space = Space(slots, moment, implications)
    levels = [list(space.states(level)) for level in (0, 1, None)]
    assert [len(level) > 0 for level in levels] == [True, True, True]
    assert all(len(state.lost) <= 1 for state in (*levels[0], *levels[1]))
    digests = [state.folder.digest for level in levels for state in level]
    assert len(digests) < 2**end / 4
    assert set(digests) == {state.folder.digest for state in Space(slots, moment, implications).states()}


def test_a_state_breaks_the_properties_that_do_not_allow_it(traced: Traced) -> None:
    protocol = traced(PROGRAMS[0], BEFORE)
    slots, moment = Slots(protocol), Moment(len(protocol.steps), len(protocol.changes), ("1",))
    properties, implications = Properties(protocol), implications_of(protocol)
    for durable in chain.from_iterable(combinations(range(moment.end), n) for n in range(moment.end + 1)):
        state = State(slots, moment.end, frozenset(durable))
        broken = {
            name
            for name in implications
            if name
            and not all(
                keeps(slots, implication, set(durable), moment.number, moment.end) for implication in implications[name]
            )
        }
        assert properties.broken_by(state, moment) == broken
