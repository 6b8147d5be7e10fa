"""What is under one of the names of a renamed file must be able to be this file. `test_practice.py` has the rest."""

from dataclasses import replace

import pytest

from postcrash.checkers.one_name import OneName
from postcrash.model import Entry, History, Observation, Tree, parse_workload
from postcrash.model.judge import CannotTellError

from .test_fsync_names import ROOT, Found, objection

REPLACED = "creat b; write b 0 4096; ---; creat a; write a 0 100; fsync a; rename a b"
REUSED = "creat a; write a 0 100; fsync a; rename a b; creat a; write a 0 4096; fsync a"
MOVED_TWICE = "creat a; write a 0 100; ---; rename a b; fsync b; rename b c"
OLD_FOLDER = "mkdir D; creat D/a; ---; rename D/a b; creat D/a; fsync D"
FOLDER = "mkdir D; creat b; ---; rename D E; rename b D"


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        (REPLACED, {"b": (2, "b")}, "rename a b (operation 6): what was durable is neither a nor b; b is another file"),
        (REUSED, {"a": (7, "a")}, "rename a b (operation 4): what was durable is neither a nor b; a is another file"),
        (MOVED_TWICE, {"a": (2, "a")}, "rename b c (operation 5): what was durable is neither b nor c"),
        (
            OLD_FOLDER,
            {"D": (2, "D"), "D/a": (4, "D/a")},
            "rename D/a b (operation 3): what was durable is neither D/a nor b; D/a is another file",
        ),
        (FOLDER, {"D": (2, "b")}, "rename D E (operation 3): what was durable is neither D nor E; D is another file"),
    ],
    ids=["replaced by it", "name used again", "fsynced under a later name", "settled", "of another type"],
)
def test_another_file_under_the_name_is_not_what_was_renamed(operations: str, found: Found, expected: str) -> None:
    assert objection(OneName(), operations, found) == expected


BOTH = "rename {} {} (operation {}): the same file is {} and {}"


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        (
            "creat foo; append foo 4096; mkdir A; ---; creat A/foo; link A/foo A/bar; rename foo baz; commit",
            {"foo": (2, "foo"), "baz": (2, "foo")},
            BOTH.format("foo", "baz", 6, "foo", "baz"),
        ),
        (
            "creat bar; mkdir A; mkdir B; ---; link bar A/bar; rename bar B/foo; fsync B",
            {"A": (4, "A"), "B": (4, "B"), "A/bar": (4, "A/bar"), "B/foo": (5, "B/foo"), "bar": (4, "bar")},
            BOTH.format("bar", "B/foo", 5, "bar", "B/foo"),
        ),
        (
            "creat foo; mkdir A; ---; link foo A/bar; rename foo bar",
            {"A": (3, "A"), "foo": (3, "foo"), "bar": (3, "foo"), "A/bar": (4, "A/bar")},
            BOTH.format("foo", "bar", 4, "foo", "bar"),
        ),
    ],
)
def test_a_link_elsewhere_is_no_excuse_for_both_names(operations: str, found: Found, expected: str) -> None:
    """Not even one of the same file: it never had both names of the rename at once."""
    assert objection(OneName(), operations, found) == expected


@pytest.mark.parametrize(
    ("operations", "names"),
    [
        ("creat a; ---; link a b; rename a b", "a b"),
        ("creat a; ---; link a b; unlink a; rename b a", "a b"),
        ("creat a; ---; rename a b; link b a", "a b"),
        ("creat a; ---; rename a b; unlink b; creat a; link a b", "a b"),
        ("creat a; ---; rename a b; creat y; link y x; rename x a; rename y b", "a b"),
        ("mkdir D; creat D/a; link D/a b; ---; rename D E; rename E/a E/b", "D D/a D/b"),
    ],
)
def test_names_that_something_had_at_once_may_both_be_there(operations: str, names: str) -> None:
    paths = names.split()
    count = len(parse_workload(operations.replace("; ", "\n"), "case").operations)
    tree = History(parse_workload(operations.replace("; ", "\n"), "case"), count, count).trees[count]
    file = next(entry for path, entry in sorted(tree.items()) if entry.type == "file")
    entries = [Entry(path, "dir", inode=9) if path == "D" else replace(file, path=path) for path in paths]
    history = History(parse_workload(operations.replace("; ", "\n"), "case"), count, count)
    objected = OneName().examine(history, Observation(0, Tree([ROOT, *entries])))
    assert "the same file is" not in objected.message


EXCHANGED = "---; creat a; append a 4096; fsync a; creat b; append b 8192; fsync b; exchange a b; commit"


@pytest.mark.parametrize(
    ("found", "lost"),
    [
        ({"a": (6, "b"), "b": (6, "b")}, "a nor b"),
        ({"a": (3, "a"), "b": (3, "a")}, "b nor a"),
        ({"a": (3, "a")}, "b nor a"),
        ({"b": (3, "a")}, "b nor a"),
        ({"a": (3, "a"), "b": (6, "b")}, ""),
        ({"a": (7, "a"), "b": (7, "b")}, ""),
    ],
    ids=["the second twice", "the first twice", "one name", "one new name", "before", "after"],
)
def test_of_two_files_that_are_exchanged_both_are_there(found: Found, lost: str) -> None:
    said = objection(OneName(), EXCHANGED, found)
    assert said.partition(";")[0] == (f"exchange a b (operation 7): what was durable is neither {lost}" if lost else "")


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (REPLACED, {"b": (6, "b")}),
        (REPLACED, {"a": (6, "b"), "b": (2, "b")}),
        (REUSED, {"a": (7, "a"), "b": (7, "b")}),
        (REUSED, {"a": (3, "a")}),
        (f"{REPLACED}; unlink b", {"b": (2, "b")}),
        (f"{REPLACED}; creat c; rename c b", {"b": (2, "b")}),
        (f"{REPLACED}; write b 0 50; truncate b 70", {"b": (8, "b")}),
        (f"{REPLACED}; write b 0 50; truncate b 70", {"b": (6, "b")}),
        (MOVED_TWICE, {"b": (4, "b")}),
        (MOVED_TWICE, {"c": (4, "b")}),
        (OLD_FOLDER, {"D": (2, "D"), "D/a": (4, "D/a"), "b": (3, "b")}),
        (FOLDER, {"D": (2, "D"), "b": (2, "b")}),
        ("creat b; write b 0 4096; ---; creat a; write a 0 100; fsync a; link a c; rename a b", {"b": (2, "b")}),
    ],
    ids=[
        *("renamed", "not yet renamed", "both files", "before the rename", "removed later", "replaced later"),
        *("changed later", "not yet changed", "fsynced name", "later name", "moved out", "not yet moved", "linked"),
    ],
)
def test_what_a_crash_may_leave_of_a_rename(operations: str, found: Found) -> None:
    assert objection(OneName(), operations, found) == ""


def test_a_file_that_breaks_a_documented_promise_may_be_the_renamed_one() -> None:
    """`durability` objects that the set-up's bytes are gone. Nobody can say that the file has vanished as well."""
    operations = "creat a; write a 0 4096; ---; rename a b"
    assert objection(OneName(), operations, {"b": (1, "a")}) == ""
    assert objection(OneName(), REUSED, {"a": (5, "a")}) == ""


def test_another_file_beside_what_cannot_be_read_is_undecided() -> None:
    workload = parse_workload(REUSED.replace("; ", "\n"), "case")
    history = History(workload, 7, 7)
    found = [ROOT, history.trees[7]["a"], Entry("c", "file", error=5)]
    with pytest.raises(CannotTellError, match="c cannot be read"):
        OneName().examine(history, Observation(0, Tree(found)))


MADE_ANEW = "creat a; ---; rename a b; creat a; fsync a"
FOLDER_ANEW = "mkdir D; ---; rename D E; mkdir D; creat D/a; fsync D/a"
SHIFTED = "creat a; creat b; creat c; ---; rename a d; rename b a; rename c b"
ONE_FOR_TWO = "if a is it, something else that must be there is missing"


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        (MADE_ANEW, {"a": (1, "a")}, f"rename a b (operation 2): what was durable is neither a nor b; {ONE_FOR_TWO}"),
        (
            MADE_ANEW,
            {"a": (4, "a"), "c": (4, "a")},
            f"rename a b (operation 2): what was durable is neither a nor b; {ONE_FOR_TWO}",
        ),
        (
            FOLDER_ANEW,
            {"D": (3, "D"), "D/a": (4, "D/a")},
            "rename D E (operation 2): what was durable is neither D nor E; "
            "if D is it, something else that must be there is missing",
        ),
        (
            SHIFTED,
            {"a": (3, "a"), "b": (3, "b")},
            "rename c b (operation 6): what was durable is neither c nor b; "
            "if b is it, something else that must be there is missing",
        ),
    ],
    ids=["fsynced under the old name", "with a second link", "folder", "two renamed files"],
)
def test_one_found_file_is_not_two(operations: str, found: Found, expected: str) -> None:
    assert objection(OneName(), operations, found) == expected


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (MADE_ANEW, {"a": (4, "a"), "b": (4, "b")}),
        (f"{MADE_ANEW}; unlink a", {"b": (4, "b")}),
        (f"{MADE_ANEW}; unlink a", {"a": (1, "a")}),
        (f"{MADE_ANEW}; unlink b", {"a": (4, "a")}),
        (MADE_ANEW.removesuffix("; fsync a"), {"a": (1, "a")}),
        (FOLDER_ANEW, {"D": (4, "D"), "D/a": (4, "D/a"), "E": (1, "D")}),
        (SHIFTED, {"a": (3, "a"), "b": (3, "b"), "c": (3, "c")}),
        (SHIFTED, {"d": (3, "a"), "b": (3, "b"), "c": (3, "c")}),
        (SHIFTED, {"d": (3, "a"), "a": (3, "b"), "c": (3, "c")}),
        (SHIFTED, {"d": (3, "a"), "a": (3, "b"), "b": (3, "c")}),
    ],
)
def test_each_of_several_files_is_found(operations: str, found: Found) -> None:
    assert objection(OneName(), operations, found) == ""


def test_an_fsync_that_lost_its_own_file_does_not_take_the_renamed_one() -> None:
    """The file under the old name is clearly the older one. This is for `fsync-names`, and the rename lost nothing."""
    operations = "creat a; write a 0 100; ---; rename a b; creat a; write a 0 4096; fsync a"
    assert objection(OneName(), operations, {"a": (2, "a")}) == ""
