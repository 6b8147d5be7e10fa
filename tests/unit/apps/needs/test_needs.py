"""The needs of small protocols, as a judge in Python sees them."""

import io
import tarfile
from itertools import combinations

import pytest

from postcrash.apps.needs import ASSUMPTIONS, BadFolder, SearchLimits, find_needs, is_enough
from postcrash.apps.needs.assumptions import implications_of
from postcrash.apps.needs.needs import EnoughSet
from postcrash.apps.needs.space import Judge, Moment
from postcrash.apps.protocol.states import State
from postcrash.properties import PROPERTIES

from ..conftest import Traced

pytestmark = pytest.mark.slow


def files(state: State) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(state.folder.archive)) as archive:
        found = {member.name: archive.extractfile(member) for member in archive if member.isreg() or member.islnk()}
        return {name: file.read() for name, file in found.items() if file is not None}


def judge(condition: str) -> Judge:
    """The condition speaks of `f`, the contents of files by their names, and `said`, the number of lines."""

    def ask(states: list[tuple[State, Moment]]) -> list[str | None]:
        names = [{"f": files(state), "said": len(moment.outputs)} for state, moment in states]
        return ["" if eval(condition, {}, each) else "bad" for each in names]

    return ask


OLD_OR_NEW = "f.get('a') in (b'old', b'new')"
# set-up, program, what must be, the sets that are enough
CASES = [
    ("put('a', 'old')", "put('b', 'new'); os.rename('b', 'a')", OLD_OR_NEW, ["P5"]),
    ("put('a', 'old')", "os.fsync(put('b', 'new')); os.rename('b', 'a')", OLD_OR_NEW, [""]),
    ("", "os.fsync(put('a', 'new')); print(1, flush=True)", "not said or f.get('a') == b'new'", ["P4"]),
    ("put('a', 'old')", "put('b', ''); os.unlink('a')", "'a' in f or 'b' in f", ["P1"]),
    ("put('a', '')", "put('a', 'new')", "f['a'] in (b'', b'new')", ["P2"]),
    (
        "put('a', '')",
        "put('a', 'x' * 4096); put('a', 'y', 4096)",
        "f['a'] in (b'', b'x' * 4096, b'x' * 4096 + b'y')",
        ["P2"],
    ),
    ("put('a', ''); put('b', '')", "put('a', 'new'); put('b', 'new')", "f['b'] != b'new' or f['a'] == b'new'", ["P3"]),
    (
        "",
        "for name in 'ab':\n    file = put(name, ''); os.truncate(name, 4096); os.fsync(file)\nsync('.')\n"
        "for name in 'ab':\n    m = mmap.mmap(os.open(name, os.O_RDWR), 4096); m[0] = 7; os.chmod(name, 0o644)",
        "not any(f.get('b', b'')) or any(f['a'])",
        ["P3"],
    ),
    ("put('a', '')", "print(1, flush=True); put('a', 'new')", "not said or f['a'] == b'new'", None),
]


@pytest.mark.parametrize(("before", "program", "condition", "sets"), CASES)
def test_needs_of_small_protocols(
    traced: Traced, before: str, program: str, condition: str, sets: list[str] | None
) -> None:
    needs = find_needs(traced(program, before), judge(condition), SearchLimits(), lambda text: None)
    if sets is None:
        assert needs.hopeless is not None
        assert not needs.sets
    else:
        assert [",".join(sorted(each.names)) for each in needs.sets][: len(sets)] == sets
        assert needs.is_complete
    assert bool(needs.failures) == (sets != [""])


@pytest.mark.parametrize(("before", "program", "condition", "sets"), CASES)
def test_each_set_is_enough_and_no_smaller_one_is(
    traced: Traced, before: str, program: str, condition: str, sets: list[str] | None
) -> None:
    """Each property is tried by itself. Where one is enough, a set is found, and a found set of one is among these."""
    protocol = traced(program, before)
    needs = find_needs(protocol, judge(condition), SearchLimits(), lambda text: None)
    for each in needs.sets:
        for name in each.names:
            assert isinstance(is_enough(protocol, judge(condition), SearchLimits(), each.names - {name}), BadFolder)
    known = [name for name, implications in implications_of(protocol).items() if name and implications]
    enough = [
        frozenset(names)
        for size in (0, 1)
        for names in combinations(known, size)
        if isinstance(is_enough(protocol, judge(condition), SearchLimits(), frozenset(names)), EnoughSet)
    ]
    assert bool(enough) == bool(needs.sets)
    assert all(each.names in enough for each in needs.sets if len(each.names) < 2)


OLD = "put('f', 'o' * 8192)"
ALL_NEW = "not said or b'o' not in f['f']"
MAPPED = "file = os.open('f', os.O_RDWR); m = mmap.mmap(file, 8192); "
NAMELESS = "file = os.open('.', os.O_TMPFILE | os.O_WRONLY); os.write(file, b'new')"
LINKED = "os.link(f'/proc/self/fd/{file}', 'a', dst_dir_fd=os.open('.', 0))"
# what is no protection, the properties that the file system has, set-up, program, what must be
UNPROTECTED = [
    (
        "O_DSYNC: other bytes of the file",
        "",
        OLD,
        "put('f', 'n' * 4096); put('f', 'n' * 4096, 4096, flags=os.O_WRONLY | os.O_DSYNC); print(1, flush=True)",
        ALL_NEW,
    ),
    (
        "msync: other pages",
        "",
        OLD,
        f"{MAPPED} m[:8192] = b'n' * 8192; m.flush(0, 4096); print(1, flush=True)",
        ALL_NEW,
    ),
    (
        "msync: another mapping, which is private",
        "",
        OLD,
        f"{MAPPED} m[:8192] = b'n' * 8192; mmap.mmap(file, 8192, mmap.MAP_PRIVATE).flush(); print(1, flush=True)",
        ALL_NEW,
    ),
    (
        "O_DSYNC: ftruncate",
        "",
        OLD,
        "os.ftruncate(os.open('f', os.O_RDWR | os.O_DSYNC), 0); print(1, flush=True)",
        "not said or not f['f']",
    ),
    (
        "syncfs of another file system",
        "",
        OLD,
        "put('f', 'n' * 8192); import ctypes; ctypes.CDLL(None).syncfs(os.open('/proc', 0)); print(1, flush=True)",
        ALL_NEW,
    ),
    (
        "an inode that was a symbolic link's",
        "",
        "",
        "os.symlink('x', 'a'); os.unlink('a'); put('b', 'new'); os.rename('b', 'c')",
        "f.get('c', b'new') == b'new'",
    ),
    (
        "O_TMPFILE: the data",
        "O-dir",
        "",
        f"{NAMELESS}; {LINKED}",
        "f.get('a', b'new') == b'new'",
    ),
    (
        "D-fsync-rename: fdatasync",
        "D-fsync-rename",
        "put('b', 'x')",
        "os.rename('b', 'c'); os.fdatasync(os.open('c', os.O_RDONLY)); print(1, flush=True)",
        "not said or 'c' in f",
    ),
    (
        "P5: a file that was there before",
        "P5",
        "put('a', 'old'); put('b', 'xxx')",
        "put('b', 'new'); os.rename('b', 'a')",
        OLD_OR_NEW,
    ),
    ("D-return-data: stores", "D-return-data", OLD, f"{MAPPED} m[:8192] = b'n' * 8192; print(1, flush=True)", ALL_NEW),
]


@pytest.mark.parametrize(("what", "name", "before", "program", "condition"), UNPROTECTED)
def test_what_protects_nothing(traced: Traced, what: str, name: str, before: str, program: str, condition: str) -> None:
    names = frozenset(filter(None, [name]))
    assert isinstance(is_enough(traced(program, before), judge(condition), SearchLimits(), names), BadFolder), what


# what is protected, set-up, program, what must be
PROTECTED = [
    (
        "a file that is made anew in place",
        "put('f', 'old')",
        "file = os.open('f', os.O_RDWR); os.ftruncate(file, 0); os.ftruncate(file, 8192); os.fsync(file); "
        "print(1, flush=True)",
        "not said or f['f'] == bytes(8192)",
    ),
    (
        "what stands before the new end",
        "put('f', 'o' * 12288)",
        "os.truncate('f', 8192); sync('f'); print(1, flush=True)",
        "not said or f['f'] == b'o' * 8192",
    ),
    (
        "O_TMPFILE: data that was flushed",
        "",
        f"{NAMELESS}; os.fsync(file); {LINKED}",
        "f.get('a', b'new') == b'new'",
    ),
    (
        "msync: its own page",
        OLD,
        f"{MAPPED} m[:4096] = b'n' * 4096; m.flush(0, 4096); print(1, flush=True)",
        "not said or f['f'][:4096] == b'n' * 4096",
    ),
    (
        "O_DSYNC: its own bytes",
        OLD,
        "put('f', 'n' * 4096, 4096, flags=os.O_WRONLY | os.O_DSYNC); print(1, flush=True)",
        "not said or f['f'][4096:] == b'n' * 4096",
    ),
]


@pytest.mark.parametrize(("what", "before", "program", "condition"), PROTECTED)
def test_what_is_protected(traced: Traced, what: str, before: str, program: str, condition: str) -> None:
    found = is_enough(traced(program, before), judge(condition), SearchLimits(), frozenset())
    assert isinstance(found, EnoughSet), what


def test_folders_of_which_the_check_cannot_tell_are_not_fine(traced: Traced) -> None:
    protocol = traced("put('a', 'x')")
    found = is_enough(protocol, lambda states: [None] * len(states), SearchLimits(), frozenset())
    assert isinstance(found, EnoughSet)
    assert not found.is_complete


def test_a_budget_that_runs_out_is_said(traced: Traced) -> None:
    protocol = traced("for n in range(9): put(f'{n}', 'x')")
    needs = find_needs(protocol, judge("True"), SearchLimits(folders=20), lambda text: None)
    (only,) = needs.sets
    assert (only.names, only.folders, only.is_complete, needs.is_complete) == (frozenset(), 20, False, False)


def test_assumptions_are_properties_of_the_catalogue() -> None:
    assert {each.name for each in ASSUMPTIONS} <= {each.name for each in PROPERTIES}
