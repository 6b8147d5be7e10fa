"""A name that was removed before an fsync of the file by another name or a handle is gone after a crash."""

import pytest

from postcrash.checkers.removed_names import RemovedNames
from postcrash.model import Entry, History, Observation, Tree, Verdict, parse_workload

from .test_fsync_names import ROOT, Found, objection

LINKED = "creat a; write a 0 100; link a b; ---; unlink b; fsync a"
NO_BYTES = LINKED.replace("write a 0 100", "truncate a 100")
HELD = "mkdir D; creat D/a; ---; open D/a; unlink D/a; fsync @D/a"
IN_FOLDER = "mkdir D; creat a; link a D/b; ---; unlink D/b; fsync a"
NEW_FOLDER = "creat a; ---; mkdir D; link a D/b; sync; unlink D/b; fsync a"
FOLDER_LATER = f"{IN_FOLDER}; rmdir D"
FOLDER_BEFORE = "mkdir D; creat a; link a D/b; ---; unlink D/b; rmdir D; fsync a"
FOLDER_OVER = "mkdir D; creat a; link a D/b; mkdir E; ---; unlink D/b; fsync a; rename E D"
USED_AGAIN = f"{LINKED}; creat b; write b 0 50"
USED_BETWEEN = "creat a; write a 0 100; link a b; ---; unlink b; creat b; rename b c; fsync a"
SHORTER = "creat a; write a 0 100; link a b; creat c; write c 0 50; ---"
TWO_LOST = f"{SHORTER}; unlink b; fsync a; link c b; fsync c; unlink b; fsync c"


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        (LINKED, {"a": (3, "a"), "b": (3, "b")}, "fsync a (operation 5) had returned after unlink b (operation 4)"),
        (HELD, {"D": (1, "D"), "D/a": (2, "D/a")}, "fsync @D/a (operation 5) had returned after unlink D/a"),
        (IN_FOLDER, {"D": (1, "D"), "D/b": (3, "D/b"), "a": (2, "a")}, "fsync a (operation 5) had returned after"),
        (NEW_FOLDER, {"D": (2, "D"), "D/b": (3, "D/b"), "a": (1, "a")}, "fsync a (operation 6) had returned after"),
        (
            f"{LINKED}; creat b; write b 0 200",
            {"a": (3, "a"), "b": (3, "b")},
            "fsync a (operation 5) had returned after unlink b",
        ),
        (
            "creat a; write a 0 100; open a; ---; unlink a; creat a; fsync @a; write a 0 100",
            {"a": (2, "a")},
            "fsync @a (operation 6) had returned after unlink a (operation 4)",
        ),
        (
            "mkdir D; creat a; link a D/b; ---; unlink D/b; rename D E; fsync .; fsync a",
            {"E": (1, "D"), "E/b": (3, "D/b"), "a": (2, "a")},
            "fsync a (operation 7) had returned after unlink D/b (operation 4)",
        ),
        (
            "mkdir D; creat a; link a D/b; ---; rename D E; fsync .; unlink E/b; fsync a",
            {"E": (1, "D"), "E/b": (3, "D/b"), "a": (2, "a")},
            "fsync a (operation 7) had returned after unlink E/b (operation 6)",
        ),
        (FOLDER_LATER, {"D": (1, "D"), "D/b": (3, "D/b"), "a": (2, "a")}, "fsync a (operation 5) had returned after"),
        (FOLDER_BEFORE, {"D": (1, "D"), "D/b": (3, "D/b"), "a": (2, "a")}, "fsync a (operation 6) had returned after"),
        (FOLDER_OVER, {"D": (1, "D"), "D/b": (3, "D/b"), "a": (2, "a")}, "fsync a (operation 6) had returned after"),
        (USED_AGAIN, {"a": (3, "a"), "b": (3, "b")}, "fsync a (operation 5) had returned after unlink b (operation 4)"),
        (
            f"{USED_AGAIN}; write b 50 150; fsync b",
            {"a": (3, "a"), "b": (3, "b")},
            "fsync a (operation 5) had returned",
        ),
        (
            USED_BETWEEN,
            {"a": (3, "a"), "b": (3, "b")},
            "fsync a (operation 7) had returned after unlink b (operation 4)",
        ),
        (TWO_LOST, {"a": (2, "a"), "c": (5, "c"), "b": (3, "b")}, "fsync a (operation 7) had returned after unlink b"),
        (TWO_LOST, {"a": (2, "a"), "c": (5, "c"), "b": (9, "b")}, "fsync a (operation 7) had returned after unlink b"),
        (f"{NO_BYTES}; creat b; write b 0 200", {"a": (3, "a"), "b": (3, "b")}, "fsync a (operation 5) had returned"),
        (f"{LINKED}; creat b; reflink a 0 b 0 100", {"a": (3, "a"), "b": (3, "b")}, "fsync a (operation 5) had"),
        ("creat a; ---; link a b; unlink a; fsync b; creat a", {"a": (2, "a"), "b": (2, "b")}, "fsync b (operation 4)"),
    ],
    ids=[
        "by its other name",
        "by a handle",
        "in a folder",
        "in a new folder",
        "by its bytes",
        "by its bytes, held open",
        "folder renamed for certain later",
        "folder renamed for certain before",
        "folder removed later",
        "folder removed before",
        "folder replaced",
        "name used again",
        "name fsynced again",
        "name used between",
        "two lost it",
        "as the other",
        "one file with the fsynced name",
        "one file, shared bytes",
        "one file, empty",
    ],
)
def test_a_removed_name_is_there_again(operations: str, found: Found, expected: str) -> None:
    said = objection(RemovedNames(), operations, found)
    assert said.startswith(expected)
    assert said.endswith(" is there")


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (LINKED, {"a": (3, "a")}),
        ("creat a; link a b; ---; unlink b", {"a": (1, "a"), "b": (2, "b")}),
        ("creat a; link a b; ---; unlink b; fdatasync a", {"a": (1, "a"), "b": (2, "b")}),
        ("creat a; link a b; ---; fsync a; unlink b", {"a": (1, "a"), "b": (2, "b")}),
        ("creat a; link a b; creat c; ---; unlink b; fsync c", {"a": (1, "a"), "b": (2, "b")}),
        (USED_AGAIN, {"a": (3, "a"), "b": (7, "b")}),
        (f"{NO_BYTES}; creat b; write b 0 200", {"b": (3, "b")}),
        (f"{LINKED}; creat b; write b 0 200; unlink a", {"b": (3, "b")}),
        (f"{LINKED}; creat b; write b 0 200; truncate a 0", {"b": (3, "b")}),
        (f"{LINKED}; creat b; reflink a 0 b 0 100", {"b": (3, "b")}),
        (f"{LINKED}; link a b", {"a": (3, "a"), "b": (3, "b")}),
        (f"{LINKED}; rename a b", {"b": (3, "b")}),
        ("creat a; ---; rename a b; fsync b", {"a": (1, "a")}),
        ("creat a; link a b; creat c; ---; rename c b; fsync a", {"a": (1, "a"), "b": (2, "b")}),
        ("mkdir D; creat a; link a D/b; ---; rename D E; unlink E/b; fsync a", {"E": (1, "D"), "E/b": (3, "D/b")}),
        (
            "mkdir D; mkdir D/F; creat a; link a D/F/b; ---; rename D E; unlink E/F/b; fsync a",
            {"E": (1, "D"), "E/F": (2, "D/F"), "E/F/b": (4, "D/F/b")},
        ),
        ("mkdir D; creat a; link a D/b; ---; unlink D/b; rename D E; fsync a", {"E": (1, "D"), "E/b": (3, "D/b")}),
        ("creat a; link a b; ---; unlink b; fsync a; fsync .", {"a": (1, "a"), "b": (2, "b")}),
        (LINKED, {"a": (3, "a"), "b": (1, "a")}),
        ("mkdir c; creat a; link a b; ---; unlink b; fsync a", {"a": (2, "a"), "b": (1, "c")}),
        (
            "mkdir D; creat D/b; ---; rename D/b a; rmdir D; mkdir D; link a D/b; unlink D/b; fsync a",
            {"D": (1, "D"), "D/b": (2, "D/b")},
        ),
    ],
    ids=[
        *(
            "gone",
            "no fsync",
            "fdatasync",
            "fsync before it",
            "fsync of another file",
            "another file",
            "either",
            "either, blocks used again",
            "either, blocks used again after truncate",
            "shared bytes",
            "linked again",
        ),
        *(
            "moved there",
            "renamed",
            "replaced",
            "folder renamed before",
            "folder above renamed before",
            "folder renamed later",
            "asked of durability",
        ),
        *("promise that durability finds broken", "something else", "in the folder that was there before"),
    ],
)
def test_what_a_crash_may_leave_of_removed_names(operations: str, found: Found) -> None:
    assert objection(RemovedNames(), operations, found) == ""


def test_what_cannot_be_read_is_left_to_mounts() -> None:
    workload = parse_workload("creat a\nlink a b\n---\nunlink b\nfsync a\n", "case")
    history = History(workload, 4, 4)
    for error, objected in ((0, True), (5, False)):
        found = Tree([ROOT, history.trees[4]["a"], Entry("b", "file", error=error)])
        assert (RemovedNames().examine(history, Observation(0, found)).verdict is Verdict.VIOLATED) == objected


def test_what_was_not_started_took_nothing_away() -> None:
    workload = parse_workload(LINKED.replace("; ", "\n") + "\nlink a b\nunlink b\n", "case")
    history = History(workload, 5, 5)
    found = Tree([ROOT, *(history.trees[3][name] for name in "ab")])
    objected = RemovedNames().examine(history, Observation(0, found))
    assert objected.verdict is Verdict.VIOLATED
    assert "after unlink b (operation 4)" in objected.message


def test_an_fsync_that_has_not_returned_promises_nothing() -> None:
    assert objection(RemovedNames(), LINKED, {"a": (3, "a"), "b": (3, "b")}, is_last_running=True) == ""
