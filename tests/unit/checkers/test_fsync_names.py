"""Every fsync of a name counts, not only the first. `test_practice.py` has the rest of what fsync-names asks."""

from dataclasses import replace

import pytest

from postcrash.checkers import Checker
from postcrash.checkers.fsync_names import FsyncNames
from postcrash.model import Entry, History, Observation, Tree, parse_workload

ROOT = Entry(".", "dir", inode=1)
Found = dict[str, tuple[int, str]]


def objection(checker: Checker, operations: str, found: Found, is_last_running: bool = False) -> str:
    """What the checker says if a crash after all operations shows these names.

    All operations had returned, unless the last one is running. `{"b": (3, "a")}`: b is found as a was after three
    operations.
    """
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    count = len(workload.operations)
    history = History(workload, count, count - 1 if is_last_running else count)
    entries = [replace(history.trees[number][name], path=path) for path, (number, name) in found.items()]
    objected = checker.examine(history, Observation(0, Tree([ROOT, *entries])))
    return objected.message


NEW_FILE = "creat a; write a 0 4096; fsync a; creat b; write b 0 100; rename b a; fsync a"
IN_SETUP = "creat a; write a 0 4096; ---; append a 4096; fsync a; creat b; write b 0 100; rename b a; fsync a"
EXCHANGED = (
    "creat a; write a 0 4096; creat b; write b 0 100; ---; append a 10; fsync a; append b 10; fsync b; "
    "exchange a b; fsync a"
)
IN_FOLDER = "mkdir D; ---; creat D/a; write D/a 0 4096; fsync D/a; creat b; write b 0 100; rename b D/a; fsync D/a"
O_SYNC = "creat a; write-osync a 0 4096"
THRICE = f"{NEW_FILE}; creat c; write c 0 50; rename c a; fsync a"


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        (NEW_FILE, {"a": (3, "a")}, "fsync a (operation 7) had returned, but a is another file"),
        (NEW_FILE, {}, "fsync a (operation 3) had returned, but a is missing"),
        (IN_SETUP, {"a": (4, "a")}, "fsync a (operation 8) had returned, but a is another file"),
        (EXCHANGED, {"a": (8, "a"), "b": (8, "b")}, "fsync a (operation 10) had returned, but a is another file"),
        (
            IN_FOLDER,
            {"D": (1, "D"), "D/a": (4, "D/a")},
            "fsync D/a (operation 8) had returned, but D/a is another file",
        ),
        (O_SYNC, {}, "write-osync a 0 4096 (operation 2) had returned, but a is missing"),
        (O_SYNC.replace("write", "dwrite"), {}, "dwrite-osync a 0 4096 (operation 2) had returned, but a is missing"),
        (THRICE, {"a": (3, "a")}, "fsync a (operation 7) had returned, but a is another file"),
        (THRICE, {"a": (7, "a")}, "fsync a (operation 11) had returned, but a is another file"),
    ],
    ids=[
        "new",
        "missing",
        "part of the set-up",
        "exchanged",
        "in a folder",
        "O_SYNC",
        "O_DIRECT and O_SYNC",
        "the oldest of three",
        "the second",
    ],
)
def test_a_later_fsync_of_the_name_counts(operations: str, found: Found, expected: str) -> None:
    assert objection(FsyncNames(), operations, found) == expected


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (NEW_FILE, {"a": (7, "a")}),
        (IN_SETUP, {"a": (8, "a")}),
        (EXCHANGED, {"a": (10, "a"), "b": (10, "b")}),
        (IN_FOLDER, {"D": (1, "D"), "D/a": (8, "D/a")}),
        (THRICE, {"a": (11, "a")}),
    ],
)
def test_the_file_of_the_latest_fsync_is_accepted(operations: str, found: Found) -> None:
    assert objection(FsyncNames(), operations, found) == ""


@pytest.mark.parametrize("count", [3, 7])
def test_an_fsync_that_has_not_returned_leaves_the_older_file(count: int) -> None:
    assert objection(FsyncNames(), NEW_FILE, {"a": (count, "a")}, is_last_running=True) == ""


@pytest.mark.parametrize(("number", "name"), [(7, "a"), (11, "a"), (10, "c")])
def test_what_replaces_the_file_later_is_accepted_as_well(number: int, name: str) -> None:
    """The second fsync leaves less open than the first, and still each file that an operation puts there later."""
    operations = f"{NEW_FILE}; creat c; write c 0 50; fsync c; rename c a"
    assert objection(FsyncNames(), operations, {"a": (number, name)}) == ""
    assert "(operation 7) had returned" in objection(FsyncNames(), operations, {"a": (3, "a")})


def test_fsync_names_is_tested_by_a_later_fsync_alone() -> None:
    """Documents promise the name to the file that the first fsync is of. The second one asks for another file."""
    workload = parse_workload(IN_SETUP.replace("; ", "\n"), "case")
    seen = Observation(0, Tree([ROOT]))
    assert [FsyncNames().examine(History(workload, 8, returned), seen).relevant for returned in (7, 8)] == [False, True]


MOVED_BEFORE = "mkdir D; creat D/x; ---; rename D E; creat E/b; append E/b 4096; fsync E/b; commit"
IN_TURNS = "mkdir D; mkdir D/E; ---; rename D/E E; rename D E/D; creat E/D/b; fsync E/D/b"


@pytest.mark.parametrize(
    ("operations", "found", "missing"),
    [
        (MOVED_BEFORE, {"E": (3, "E"), "E/x": (3, "E/x")}, "D/b nor E/b"),
        (MOVED_BEFORE, {"D": (2, "D"), "D/x": (2, "D/x")}, "D/b nor E/b"),
        (MOVED_BEFORE, {}, "D/b nor E/b"),
        (f"{MOVED_BEFORE}; rename E F", {"F": (8, "F")}, "D/b nor E/b nor F/b"),
        (IN_TURNS, {"E": (3, "E"), "E/D": (4, "E/D")}, "D/b nor E/D/b"),
        (MOVED_BEFORE, {"E": (5, "E"), "E/b": (5, "E/b")}, ""),
        (MOVED_BEFORE, {"D": (5, "E"), "D/b": (5, "E/b")}, ""),
        (f"{MOVED_BEFORE}; unlink E/b", {"E": (3, "E")}, ""),
        (IN_TURNS, {"D": (2, "D"), "D/b": (5, "E/D/b")}, ""),
    ],
)
def test_a_name_in_a_folder_that_moves_is_under_one_of_its_paths(operations: str, found: Found, missing: str) -> None:
    said = objection(FsyncNames(), operations, found)
    assert said.endswith(f", but there is neither {missing}" if missing else "") and bool(said) == bool(missing)
