"""Things that checkers do not check. Each has the case that would be a false alarm, and a similar case that is none.

Every item of durability's list has a row, and every row has an item.
"""

import re

import pytest

from postcrash.checkers import durability
from postcrash.checkers.checker import Checker
from postcrash.checkers.durability import Durability
from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.checkers.link_counts import LinkCounts
from postcrash.checkers.mounts import Mounts
from postcrash.checkers.never_written import NeverWritten
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict
from postcrash.model.judge import CannotTellError
from postcrash.properties.family import family

from .test_durability import check

TWO = "mkdir D; mkdir E; creat D/a"
OPEN = "creat a; append a 10"

# how the item begins; set-up, operations (all returned), tree after the crash; the same for the case without excuse
DURABILITY = [
    # The blocks of D and E are written one by one.
    ("a file that was moved", (TWO, "rename D/a E/a; fsync D", "D/ E/"), (TWO, "rename D/a E/a", "D/ E/")),
    ("a file that was moved", (TWO, "rename D E/D; fsync .", "E/"), (TWO, "rename D E/D", "E/")),
    # Removals go to the disk before links and renames.
    ("a file if a later", ("creat a", "link a b; unlink a", ""), ("creat a", "link a b; rename a c", "")),
    ("a file if a later", ("creat a; creat b", "link b c; rename a b", "b"), ("creat a; creat b", "rename a c", "b")),
    ("a file if a later", (TWO, "rename D/a E/a; rmdir D", "E/"), (TWO, "rename D/a E/a", "D/ E/")),
    # The name is back because its removal was lost. It stands for a file that nobody had to keep.
    (
        "contents of a file that had no name",
        (OPEN, "open a; unlink a; write @a 0 10; fsync @a", "a=w0:10"),
        (OPEN, "open a; write @a 0 10; fsync @a; unlink a", "a=w0:10"),
    ),
    # A rename that is half done, on a file system that has no inodes: c has its new name and still has the old one.
    (
        "which of the files",
        ("creat a; creat c", "append a 10; fsync a; rename c a", "a c"),
        ("creat a; creat c; append c 5", "append a 10; fsync a; rename c a", "a c=w0:5"),
    ),
    ("bytes beyond", (OPEN, "append a 10", "a=w0:10+other:5"), (OPEN, "append a 10", "a=other:15")),
    (
        "zero and stale bytes",
        ("creat a; truncate a 8192", "write a 0 100", "a=stale:4096+zero:4096"),
        ("creat a; truncate a 8192", "write a 0 100", "a=zero:4096+stale:4096"),
    ),
    (
        "zero and stale bytes",
        (OPEN, "truncate a 0; append a 10", "a=stale:10"),
        (OPEN, "write a 0 10", "a=stale:10"),
    ),
    # The write goes to the second block, which is the first one after the shift. In place of it nothing is excused.
    (
        "bytes that collapse-range",
        (
            "creat a; append a 8192",
            "fallocate a collapse-range 0 4096; dwrite a 0 512",
            "a=w0:4096+w1>4096:512+w0:3584",
        ),
        (
            "creat a; append a 8192",
            "fallocate a collapse-range 0 4096; dwrite a 0 512",
            "a=w0:4096+w0>4096:512+w0:3584",
        ),
    ),
    (
        "bytes that collapse-range",
        ("creat a; append a 8192", "fallocate a insert-range 0 4096; write a 4096 512", "a=w1>-4096:512+w0:7680"),
        ("creat a; append a 8192", "write a 4096 512; fallocate a insert-range 0 4096", "a=w1>-4096:512+w0:7680"),
    ),
    (
        "zero bytes behind the end",
        ("creat a; append a 9000", "truncate a 5000", "a=w0:5000+zero:3192+w0:808"),
        ("creat a; append a 9000", "truncate a 5000", "a=w0:8192+zero:808"),
    ),
    ("entries of a directory", ("mkdir D", "creat D/a; fdatasync D", "D/"), ("mkdir D", "creat D/a; fsync D", "D/")),
]


@pytest.mark.parametrize(("item", "fine", "broken"), DURABILITY)
def test_durability(item: str, fine: tuple[str, str, str], broken: tuple[str, str, str]) -> None:
    assert check(*fine) == ""
    assert check(*broken) != ""


def test_durability_has_no_other_exclusions() -> None:
    assert durability.__doc__
    _, listed = durability.__doc__.split("does not check the following.")
    items = re.findall(r"^- (.*)", listed, re.MULTILINE)
    begun = {item for item, _, _ in DURABILITY} | {"permission bits"}
    assert len(items) == len(begun)
    assert all(sum(text.startswith(item) for text in items) == 1 for item in begun)


def found(checker: Checker, operations: str, *entries: Entry) -> bool:
    (workload,) = family(("excluded", "", operations))
    count = len(workload.operations)
    tree = Tree([Entry(".", "dir", nlink=2, inode=1), *entries])
    return checker.examine(History(workload, count, count), Observation(0, tree)).verdict is Verdict.VIOLATED


def a_file(*runs: Segment, path: str = "a", mode: int = 0o644, error: int = 0, inode: int = 2, nlink: int = 1) -> Entry:
    size = runs[-1].end if runs else 0
    return Entry(path, "file", mode, nlink=nlink, inode=inode, size=size, segments=runs, error=error)


@pytest.mark.parametrize("checker", [Durability(), NeverWritten()])
def test_permission_bits_that_vfat_makes_up(checker: Checker) -> None:
    assert not found(checker, "creat a; sync", a_file(mode=0o755))


def test_never_written_leaves_bytes_to_foreign_bytes_and_unreadable_entries_to_mounts() -> None:
    stale, unreadable = a_file(Segment(0, 10, "stale")), a_file(error=5)
    assert not found(NeverWritten(), OPEN, stale)
    assert found(ForeignBytes(), OPEN, stale)
    assert not found(NeverWritten(), OPEN, unreadable)
    assert found(Mounts(), OPEN, unreadable)


def test_foreign_bytes_leaves_unreadable_bytes_to_mounts_and_strange_names_to_never_written() -> None:
    unreadable, strange = a_file(Segment(0, 10, "error:5")), a_file(Segment(0, 10, "stale"), path="b")
    assert not found(ForeignBytes(), OPEN, unreadable)
    assert found(Mounts(), OPEN, unreadable)
    assert not found(ForeignBytes(), OPEN, strange)
    assert found(NeverWritten(), OPEN, strange)


def test_bytes_of_unknown_origin_are_foreign() -> None:
    assert found(ForeignBytes(), OPEN, a_file(Segment(0, 5, "write:0"), Segment(5, 10, "other")))


def test_a_link_that_cannot_be_read_may_be_any_files() -> None:
    """The kernel does not tell the inode of a file's second name. Without this name the count would be wrong."""
    linked, unreadable = a_file(nlink=2), a_file(path="b", error=5, inode=0)
    with pytest.raises(CannotTellError, match="b cannot be read"):
        found(LinkCounts(), "creat a; link a b", linked, unreadable)
    assert found(LinkCounts(), "creat a; link a b", linked)
