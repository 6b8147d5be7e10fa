"""Each property makes safe what it is about, and nothing else does."""

from dataclasses import replace

import pytest

from postcrash.apps.needs import ASSUMPTIONS, BadFolder, EnoughSet, SearchLimits, is_enough

from ..conftest import Traced
from .test_needs import OLD_OR_NEW, judge

pytestmark = pytest.mark.slow

A = "put('a', 'o' * 8192)"
AND_B = f"{A}; put('b', 'o' * 8192)"
SAID = "print(1, flush=True)"
B_LATER = "'b' not in f or "
FLUSH = "(os.open('c', os.O_RDONLY)); print(1, flush=True)"
FLUSH_FOLDER = "os.fdatasync(os.open('.', os.O_RDONLY)); print(1, flush=True)"
MAPPED = "m = mmap.mmap(os.open('a', os.O_RDWR), 8192); "

# the property, set-up, program, what must be: not without the property, but with it
NEEDED = [
    ("P1", A, "put('b', ''); os.unlink('a')", "'a' in f or 'b' in f"),
    ("P2", "put('b', '')", "put('b', 'new')", "f['b'] in (b'', b'new')"),
    ("P3", "put('a', ''); put('b', '')", "put('a', 'new'); put('b', 'new')", "f['b'] != b'new' or f['a'] == b'new'"),
    ("P4", "", f"os.fsync(put('b', 'new')); {SAID}", "not said or f.get('b') == b'new'"),
    ("P5", "put('a', 'old')", "put('b', 'new'); os.rename('b', 'a')", OLD_OR_NEW),
    ("O-block-append", "put('b', '')", "put('b', 'new')", "f['b'] in (b'', b'new')"),
    ("O-blocks", A, "put('a', 'n' * 8192)", "len(set(f['a'])) == 1"),
    ("O-dir", A, "os.rename('a', 'c')", "('a' in f) != ('c' in f)"),
    ("O-overwrite-any", A, "put('a', 'n' * 10); put('b', '')", f"{B_LATER}f['a'][0] == ord('n')"),
    ("O-append-any", A, "put('a', 'n' * 10, 8192); put('b', '')", f"{B_LATER}f['a'][8192:] == b'n' * 10"),
    (
        "O-append-append",
        "put('b', '')",
        "put('b', 'x' * 4096); put('b', 'y' * 4096, 4096)",
        "len(f['b']) <= 4096 or f['b'][:4096] == b'x' * 4096",
    ),
    (
        "O-append-rename-any",
        "put('a', 'old')",
        "put('a', 'new', 3); os.rename('a', 'c'); put('b', '')",
        f"{B_LATER}f.get('c') == b'oldnew'",
    ),
    ("O-dir-any", A, "put('b', ''); put('a', 'n')", "f['a'][0] == ord('o') or 'b' in f"),
    ("S-atomic", A, "put('a', 'n' * 8192)", "len(set(f['a'])) == 1"),
    ("S-sequential", AND_B, "put('a', 'n'); put('b', 'n')", "f['b'][0] == ord('o') or f['a'][0] == ord('n')"),
    ("S-sync-dir", "", f"put('b', ''); {SAID}", "not said or 'b' in f"),
    ("A-rename", A, "os.rename('a', 'c')", "('a' in f) != ('c' in f)"),
    ("A-truncate", A, "os.truncate('a', 10)", "f['a'] in (b'o' * 8192, b'o' * 10)"),
    ("R-rename-new", "", "put('b', 'new'); os.rename('b', 'c')", "f.get('c', b'new') == b'new'"),
    ("R-same-file", A, "put('a', 'n'); put('a', 'n', 4096)", "f['a'][4096] == ord('o') or f['a'][0] == ord('n')"),
    ("R-two-files", AND_B, "put('a', 'n'); put('b', 'n')", "f['b'][0] == ord('o') or f['a'][0] == ord('n')"),
    ("R-two-dirs", "os.mkdir('d'); os.mkdir('e')", "put('d/x', ''); put('e/y', '')", "'e/y' not in f or 'd/x' in f"),
    ("R-append-dir", A, "put('a', 'n', 8192); put('b', '')", f"{B_LATER}f['a'][8192:] == b'n'"),
    ("R-dir-append", A, "put('b', ''); put('a', 'n', 8192)", "len(f['a']) == 8192 or 'b' in f"),
    ("R-truncate-any", A, "os.truncate('a', 0); put('b', '')", f"{B_LATER}f['a'] == b''"),
    ("R-mmap-any", A, f"{MAPPED}m[0] = 110; put('b', '')", f"{B_LATER}f['a'][0] == ord('n')"),
    ("D-return-data", A, f"put('a', 'n'); {SAID}", "not said or f['a'][0] == ord('n')"),
    ("D-fsync-rename", A, f"os.rename('a', 'c'); os.fsync{FLUSH}", "not said or 'c' in f"),
    ("D-fsync-link", A, f"os.link('a', 'c'); os.fsync{FLUSH}", "not said or 'c' in f"),
    ("D-fdatasync-rename", A, f"os.rename('a', 'c'); os.fdatasync{FLUSH}", "not said or 'c' in f"),
    ("D-fdatasync-link", A, f"os.link('a', 'c'); os.fdatasync{FLUSH}", "not said or 'c' in f"),
    ("D-fdatasync-dir-name", "", f"put('b', ''); {FLUSH_FOLDER}", "not said or 'b' in f"),
    ("D-fdatasync-dir-rename", A, f"os.rename('a', 'c'); {FLUSH_FOLDER}", "not said or 'c' in f"),
    ("D-fdatasync-dir-link", A, f"os.link('a', 'c'); {FLUSH_FOLDER}", "not said or 'c' in f"),
]


@pytest.mark.parametrize(("name", "before", "program", "condition"), NEEDED)
def test_a_property_makes_safe_what_it_is_about(
    traced: Traced, name: str, before: str, program: str, condition: str
) -> None:
    protocol = traced(program, before)
    assert isinstance(is_enough(protocol, judge(condition), SearchLimits(), frozenset()), BadFolder)
    assert isinstance(is_enough(protocol, judge(condition), SearchLimits(), frozenset({name})), EnoughSet)


def test_each_property_has_its_row() -> None:
    assert [row[0] for row in NEEDED] == [each.name for each in ASSUMPTIONS]


# the property, set-up, program, what must be: not even with the property
NOT_ENOUGH = [
    ("P1", A, "put('b', ''); put('a', 'n')", "f['a'][0] == ord('o') or 'b' in f"),
    ("P3", AND_B, "put('a', 'n'); put('b', 'n')", "f['b'][0] == ord('o') or f['a'][0] == ord('n')"),
    ("P4", A, f"os.rename('a', 'c'); os.fsync{FLUSH}", "not said or 'c' in f"),
    ("P5", "", "put('b', 'new'); os.rename('b', 'c')", "f.get('c', b'new') == b'new'"),
    ("O-block-append", "put('b', '')", "put('b', 'n' * 8192)", "f['b'] in (b'', b'n' * 8192)"),
    ("O-blocks", "put('b', '')", "put('b', 'new')", "f['b'] in (b'', b'new')"),
    ("O-overwrite-any", A, "put('a', 'n' * 10, 8192); put('b', '')", f"{B_LATER}f['a'][8192:] == b'n' * 10"),
    ("O-append-any", A, "put('a', 'n' * 10); put('b', '')", f"{B_LATER}f['a'][0] == ord('n')"),
    ("S-sequential", A, "put('a', 'n' * 10); put('b', '')", f"{B_LATER}f['a'][0] == ord('n')"),
    ("S-atomic", A, f"{MAPPED}m[0] = 110; m[4096] = 110; os.chmod('a', 0o600)", "f['a'][0] == f['a'][4096]"),
    ("A-rename", A, "os.link('a', 'b'); os.unlink('a')", "('a' in f) != ('b' in f) or ('a' in f and 'b' in f)"),
    ("R-rename-new", "put('a', 'old')", "put('b', 'new'); os.rename('b', 'a')", OLD_OR_NEW),
    ("R-same-file", AND_B, "put('a', 'n'); put('b', 'n')", "f['b'][0] == ord('o') or f['a'][0] == ord('n')"),
    ("R-two-files", A, "put('a', 'n'); put('a', 'n', 4096)", "f['a'][4096] == ord('o') or f['a'][0] == ord('n')"),
    ("R-two-dirs", "", "put('x', ''); put('y', '')", "'y' not in f or 'x' in f"),
    ("R-mmap-any", A, "put('a', 'n' * 10); put('b', '')", f"{B_LATER}f['a'][0] == ord('n')"),
    ("D-fsync-rename", A, f"os.link('a', 'c'); os.fsync{FLUSH}", "not said or 'c' in f"),
    ("D-fdatasync-link", A, f"os.link('a', 'c'); os.fsync{FLUSH}", "not said or 'c' in f"),
]


DSYNC = "flags=os.O_WRONLY | os.O_DSYNC"
GROW = "put('a', 'n' * 8192, 8192)"
PAGES = "m = mmap.mmap(os.open('a', os.O_RDWR), 16384); "
IS_LONGER = "not said or len(f['a']) > 8192"
EXCHANGE = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'a', -100, b'b', 2)"
STORE_AND_RENAME = "m = mmap.mmap(os.open('b', os.O_RDWR), 8192); m[0] = 110; os.rename('b', 'a')"
NOT_ENOUGH += [
    # The catalogue looks for the first byte of the second append, and zeros are none.
    ("P3", "put('a', ''); put('b', '')", "put('a', 'new'); put('b', 'new')", "not f['b'] or f['a'] == b'new'"),
    ("P2", A, "put('a', 'n' * 16384)", "len(f['a']) == 8192 or f['a'][0] == ord('n')"),
    (
        "P4",
        "",
        f"put('b', ''); os.rename('b', 'a'); os.fsync(put('a', 'n')); {SAID}",
        "not said or 'a' in f or 'b' in f",
    ),
    ("A-rename", f"put('a', 'x'); {A.replace('a', 'b')}", EXCHANGE, "(f['a'] == b'x') == (f['b'][:1] == b'o')"),
    ("P5", "put('a', 'old')", f"put('b', 'x' * 8192); {STORE_AND_RENAME}", "f['a'][0] != ord('x')"),
    # A flush of a part promises this part, and that the file reaches to its end.
    ("P1", A, f"{GROW}; put('a', 'x', {DSYNC}); {SAID}", IS_LONGER),
    ("P1", A, f"{GROW}; {PAGES}m[0] = 110; m.flush(0, 4096); {SAID}", IS_LONGER),
    ("P1", A, f"{GROW}; put('a', 'n'); {PAGES}m.flush(0, 4096); {SAID}", "not said or f['a'][0] == ord('n')"),
]


@pytest.mark.parametrize(("name", "before", "program", "condition"), NOT_ENOUGH)
def test_a_property_says_no_more(traced: Traced, name: str, before: str, program: str, condition: str) -> None:
    found = is_enough(traced(program, before), judge(condition), SearchLimits(), frozenset({name}))
    assert isinstance(found, BadFolder)


# set-up, program, what must be: documents promise this
PROMISED = [
    (A, f"put('a', 'n', 8192, {DSYNC}); {SAID}", "not said or f['a'][8192:] == b'n'"),
    (A, f"{GROW}; put('a', 'x', 12288, {DSYNC}); {SAID}", "not said or f['a'][12288:12289] == b'x'"),
    (A, f"{GROW}; os.truncate('a', 0); put('a', 'x', 8192, {DSYNC}); {SAID}", "not said or f['a'][8192:8193] == b'x'"),
    (A, f"os.pwritev(os.open('a', os.O_WRONLY), [b'n'], 0, os.RWF_DSYNC); {SAID}", "not said or f['a'][0] == ord('n')"),
    (A, f"f = os.open('a', os.O_WRONLY | os.O_APPEND | os.O_DSYNC); os.write(f, b'n'); {SAID}", IS_LONGER),
    (
        A,
        f"os.truncate('a', 16384); {PAGES}m[12288] = 110; m.flush(12288, 4096); {SAID}",
        "not said or f['a'][12288] == 110",
    ),
]


@pytest.mark.parametrize(("before", "program", "condition"), PROMISED)
def test_what_a_flush_of_a_part_promises(traced: Traced, before: str, program: str, condition: str) -> None:
    found = is_enough(traced(program, before), judge(condition), SearchLimits(), frozenset())
    assert isinstance(found, EnoughSet) and found.is_complete


def test_fsync_of_a_folder_promises_its_names_and_fdatasync_does_not(traced: Traced) -> None:
    """As the checker `durability` has it."""
    for call, kind in (("fsync", EnoughSet), ("fdatasync", BadFolder)):
        program = f"put('b', ''); os.{call}(os.open('.', os.O_RDONLY)); {SAID}"
        found = is_enough(traced(program, ""), judge("not said or 'b' in f"), SearchLimits(), frozenset())
        assert isinstance(found, kind), call


def test_a_call_that_may_do_several_things_is_not_atomic(traced: Traced) -> None:
    """One call of io_uring can carry out several operations."""
    protocol = traced("os.rename('a', 'c')", A)
    (rename,) = protocol.steps
    asked = judge("('a' in f) != ('c' in f)"), SearchLimits(), frozenset({"O-dir", "A-rename", "S-sync-dir"})
    assert isinstance(is_enough(protocol, *asked), EnoughSet)
    unknown = replace(protocol, steps=(replace(rename, call="io_uring_enter"),))
    assert isinstance(is_enough(unknown, *asked), BadFolder)
