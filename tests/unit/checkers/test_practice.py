"""What fstests expects: names after fsync, and one name after a rename. Each exclusion has the case that needs it."""

import pytest

from postcrash.checkers import Checker
from postcrash.checkers.fsync_names import FsyncNames
from postcrash.checkers.one_name import OneName
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload
from postcrash.model.judge import CannotTellError
from postcrash.model.tree import EntryType

ROOT = Entry(".", "dir", inode=1)


def tree(names: str) -> Tree:
    """`a=2 D=3/ D/b=2`: paths with inode numbers. A directory has a slash behind the number."""
    entries = []
    for word in names.split():
        path, _, number = word.partition("=")
        kind: EntryType = "dir" if number.endswith("/") else "symlink" if number.endswith("@") else "file"
        entries.append(Entry(path, kind, inode=int(number.rstrip("/@"))))
    return Tree([ROOT, *entries])


def message(checker: Checker, operations: str, instant: tuple[int, int], names: str) -> str:
    """The checker's message on a tree with these names, after a crash at that instant. Empty if there is none."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    finding = checker.examine(History(workload, *instant), Observation(0, tree(names)))
    return finding.message


@pytest.mark.parametrize(
    ("operations", "instant", "names", "expected"),
    [
        ("creat a; fsync a", (2, 2), "", "fsync a (operation 2) had returned, but a is missing"),
        ("creat a; fsync a", (2, 2), "a=2/", "fsync a (operation 2) had returned, but a is a dir"),
        ("creat a; fsync a; rename a b", (3, 2), "", ""),
        ("creat a; rename a b; fsync b", (3, 3), "a=2", "fsync b (operation 3) had returned, but b is missing"),
        ("creat a; link a b; fsync a", (3, 3), "a=2", "fsync a (operation 3) had returned, but b is missing"),
        ("mkdir D; creat D/a; fsync D/a", (3, 3), "D=2/", "fsync D/a (operation 3) had returned, but D/a is missing"),
        ("mkdir D; creat D/a; fsync D/a", (3, 3), "", "fsync D/a (operation 3) had returned, but D/a is missing"),
        (
            "mkdir D; creat D/a; fsync D/a; fsync D",
            (4, 4),
            "",
            "fsync D/a (operation 3) had returned, but D/a is missing",
        ),
        (
            "mkdir D; creat D/a; fsync D; fsync D/a",
            (4, 4),
            "",
            "fsync D (operation 3) had returned, but D is missing",
        ),
        ("mkdir D; fsync D", (2, 2), "", "fsync D (operation 2) had returned, but D is missing"),
        ("mkdir D; fsync D", (2, 2), "D=2", "fsync D (operation 2) had returned, but D is a file"),
        ("mkdir D; rename D E; fsync E", (3, 3), "D=2/", "fsync E (operation 3) had returned, but E is missing"),
        ("creat a; open a; fsync @a", (3, 3), "", "fsync @a (operation 3) had returned, but a is missing"),
        (
            "creat b; creat a; fsync a; rename b a",
            (4, 3),
            "b=2",
            "fsync a (operation 3) had returned, but a is missing",
        ),
    ],
)
def test_a_name_that_fsync_persists(operations: str, instant: tuple[int, int], names: str, expected: str) -> None:
    assert message(FsyncNames(), operations, instant, names) == expected


@pytest.mark.parametrize(
    ("operations", "instant", "names"),
    [
        ("creat a; fsync a", (2, 1), ""),
        ("creat a; fdatasync a", (2, 2), ""),
        ("mkdir D; fsync D", (2, 1), ""),
        ("mkdir D; fdatasync D", (2, 2), ""),
        ("mkdir D; fsync D; rmdir D", (3, 2), ""),
        ("mkdir D; fsync D; rename D E", (3, 2), ""),
        ("fsync .", (1, 1), ""),
        ("creat a; fsync a; unlink a", (3, 2), ""),
        ("mkdir D; creat D/a; fsync D/a; rename D E", (4, 3), "E=2/ E/a=3"),
        ("mkdir D; creat D/a; rename D E; fsync E/a", (4, 4), "D=2/ D/a=3"),
        ("creat a; open a; unlink a; fsync @a", (4, 4), ""),
        ("creat b; creat a; fsync a; rename b a", (4, 3), "a=2"),
    ],
)
def test_a_name_that_fsync_leaves_open(operations: str, instant: tuple[int, int], names: str) -> None:
    assert message(FsyncNames(), operations, instant, names) == ""


NEW, OLD = 4096, 100


def holding(operations: str, started: int, sizes: dict[str, int]) -> str:
    """What FsyncNames says of files with these sizes, each holding what its one write put there."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    tags = {operation.length: operation.tag for operation in workload.operations if operation.word == "write"}
    entries = []
    for number, (path, size) in enumerate(sizes.items(), 2):
        segments = (Segment(0, size, f"write:{tags[size]}"),) if size else ()
        entries.append(Entry(path, "file", inode=number, size=size, segments=segments))
    found = FsyncNames().examine(History(workload, started, started), Observation(0, Tree([ROOT, *entries])))
    return found.message


@pytest.mark.parametrize(
    "operations",
    [
        "creat a; write a 0 4096; creat b; write b 0 100; ---; rename a b; fsync b",
        "creat b; write b 0 100; ---; unlink b; creat b; write b 0 4096; fsync b",
        "creat a; write a 0 4096; creat b; write b 0 100; ---; exchange a b; fsync b",
        "creat a; write a 0 4096; creat b; write b 0 100; ---; unlink b; link a b; fsync a",
    ],
    ids=["replaced", "made anew", "exchanged", "linked"],
)
def test_a_name_stands_for_the_file_that_was_fsynced(operations: str) -> None:
    """An fsync that did nothing leaves the older file under the name, which no directory's fsync has taken away."""
    count = len(operations.replace("; ---", "").split("; "))
    assert "had returned, but b is another file" in holding(operations, count, {"a": NEW, "b": OLD})
    assert holding(operations, count, {"a": OLD, "b": NEW}) == ""


def test_a_later_operation_may_give_the_name_to_another_file() -> None:
    operations = "creat a; write a 0 4096; creat b; write b 0 100; ---; rename a b; fsync b; creat c; rename c b"
    assert holding(operations, 8, {"b": NEW}) == holding(operations, 8, {"b": 0}) == ""


def test_a_file_that_breaks_a_documented_promise_is_for_durability() -> None:
    operations = "creat a; write a 0 4096; ---; fsync a; rename a b; fsync b"
    assert holding(operations, 5, {"b": 0}) == ""


def test_unreadable_entries_are_not_one_file() -> None:
    unread = Tree([ROOT, *(Entry(path, "file", error=117) for path in "ab")])
    workload = parse_workload("creat a\ncreat b\nrename a b", "case")
    assert OneName().examine(History(workload, 3, 3), Observation(0, unread)).verdict is Verdict.HOLDS


def test_what_a_document_promises_is_for_durability() -> None:
    operations = "creat a; fsync a; fsync ."
    assert message(FsyncNames(), operations, (3, 2), "") != ""
    assert message(FsyncNames(), operations, (3, 3), "") == ""


def test_fsync_names_is_tested_where_a_file_was_fsynced() -> None:
    workload = parse_workload("creat a\nfsync a", "case")
    seen = Observation(0, tree(""))
    assert [FsyncNames().examine(History(workload, 2, returned), seen).relevant for returned in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("operations", "started", "names", "expected"),
    [
        ("creat a; rename a b", 2, "a=2 b=2", "rename a b (operation 2): the same file is a and b"),
        ("mkdir D; rename D E", 2, "D=2/ E=2/", "rename D E (operation 2): the same dir is D and E"),
        ("creat a; creat b; rename a b", 3, "a=2 b=2", "rename a b (operation 3): the same file is a and b"),
        ("creat a; rename a b; creat a", 3, "a=2 b=2", "rename a b (operation 2): the same file is a and b"),
        ("creat a; rename a b; creat a", 3, "a=3 b=2", ""),
        ("creat a; rename a b", 2, "a=2", ""),
        ("creat a; rename a b", 2, "b=2", ""),
        ("creat a; rename a b", 1, "a=2 b=2", ""),
        ("creat a; link a b; rename a b", 3, "a=2 b=2", ""),
        ("creat a; rename a b; link b a", 3, "a=2 b=2", ""),
        ("creat a; link a b; unlink b; rename a b", 4, "a=2 b=2", ""),
        ("creat a; rename a b; rename b a", 3, "a=2 b=2", "rename a b (operation 2): the same file is a and b"),
        ("creat a; rename a b; unlink b; creat a; link a b", 5, "a=3 b=3", ""),
        ("creat a; link a b; unlink a; unlink b; creat a; rename a b", 6, "a=2 b=2", ""),
        ("mkdir d; mkdir e; creat a; link a d/b; rename a e/b; rename e g; rename d e", 7, "a=4 e=2/ e/b=4 g=3/", ""),
    ],
)
def test_a_rename_leaves_one_name(operations: str, started: int, names: str, expected: str) -> None:
    assert message(OneName(), operations, (started, started - 1), names) == expected


IN_TWO = "mkdir A; mkdir B; creat A/a; ---; "


@pytest.mark.parametrize(
    ("operations", "started", "names"),
    [
        ("mkdir A; mkdir B; creat A/a; ---; rename A/a B/a; fsync A", 5, "A=2/ B=3/"),
        ("mkdir A; mkdir B; creat A/a; ---; rename A/a B/a", 4, "A=2/ B=3/"),
        ("creat a; ---; rename a b; rename b c", 3, "d=2"),
        ("mkdir D; ---; rename D E", 2, ""),
        ("creat a; fsync a; rename a b", 3, ""),
        ("mkdir D; fsync D; rename D E", 3, ""),
        ("mkdir F; creat a; fsync a; rename a F/a", 4, "F=2/"),
        ("creat b; rename b a; open a; fsync @a; rename a b", 5, ""),
    ],
)
def test_what_was_durable_is_under_one_of_its_names(operations: str, started: int, names: str) -> None:
    assert "what was durable is neither " in message(OneName(), operations, (started, started), names)
    for name in ("A/a", "B/a", "a", "b", "c", "D", "E"):
        if f" {name}" in message(OneName(), operations, (started, started), names):
            found = f"{name}=9/" if name in "DE" else f"{name}=9"
            assert message(OneName(), operations, (started, started), f"{names} {found}") == ""


@pytest.mark.parametrize(
    ("operations", "started", "names"),
    [
        (f"{IN_TWO}rename A/a B/a", 3, "A=2/ B=3/"),
        (f"{IN_TWO}rename A/a B/a; unlink B/a", 5, "A=2/ B=3/"),
        (f"{IN_TWO}creat B/b; rename A/a B/a; rename B/b B/a", 6, "A=2/ B=3/ B/b=5"),
        (f"{IN_TWO}link A/a A/l; rename A/a B/a", 5, "A=2/ B=3/ A/l=4"),
        (f"{IN_TWO}rename A C; rename C/a B/a", 5, "A=2/ B=3/"),
        (f"{IN_TWO}unlink A/a; creat A/a; rename A/a B/a", 6, "A=2/ B=3/"),
        ("creat b; rename b c", 2, ""),
        ("creat b; rename b c; fsync c", 3, ""),
        ("creat b; fdatasync b; rename b c", 3, ""),
        ("mkdir D; rename D E", 2, ""),
        ("mkdir P; creat P/a; sync; rename P Q; fsync Q/a; rename Q/a b", 6, "P=2/ P/a=3"),
        ("mkdir P; mkdir P/D; sync; rename P Q; fsync Q/D; rename Q/D E", 6, "P=2/ P/D=3/"),
        (
            "mkdir G; mkdir G/P; creat G/P/a; sync; rename G H; fsync H/P/a; rename H/P/a H/P/b",
            7,
            "G=2/ G/P=3/ G/P/a=4",
        ),
        ("mkdir P; mkdir R; creat P/a; sync; exchange P R; fsync R/a; rename R/a b", 7, "P=2/ R=3/ P/a=4"),
        ("mkdir P; sync; rename P Q; creat Q/a; fsync Q/a; rename Q/a b", 6, "P=2/ P/a=3"),
    ],
    ids=[
        *("not begun", "removed", "replaced", "linked", "its folder moved", "another file", "not durable"),
        *("fsynced later", "only its data", "a folder", "a folder above was renamed before", "a folder in it"),
        *("further up", "exchanged", "made in it"),
    ],
)
def test_what_may_be_under_none_of_its_names(operations: str, started: int, names: str) -> None:
    assert message(OneName(), operations, (started, started), names) == ""


def test_a_name_that_nobody_could_look_for_is_not_lost() -> None:
    workload = parse_workload("mkdir D\ncreat D/a\n---\nrename D/a D/b", "case")
    unread = Observation(0, Tree([ROOT, Entry("D", "dir", inode=2, error=5)]))
    with pytest.raises(CannotTellError, match="D cannot be read"):
        OneName().examine(History(workload, 3, 3), unread)


def test_one_name_is_tested_where_what_was_renamed_is_there() -> None:
    workload = parse_workload("creat a\nrename a b", "case")
    asked = [(started, names) for started in (1, 2) for names in ("", "a=2", "b=2")]
    found = [
        OneName().examine(History(workload, started, started), Observation(0, tree(n))).relevant for started, n in asked
    ]
    assert found == [False, False, False, False, True, True]
