"""What is found can be one certain inode if the inode was all of it at some time, each thing at a time of its own."""

from dataclasses import replace

import pytest

from postcrash.checkers.inode_identity import foreign_range, mismatch
from postcrash.checkers.inodes import Past
from postcrash.model import Entry, Segment

PAST = Past(
    {"file", "symlink", "char"},
    size=100,
    targets={"", "to", "1:3"},
    xattrs={("user.x", "31"), ("user.y", "32")},
    written={Segment(0, 10, "write:0"), Segment(10, 20, "write:1"), Segment(5, 15, "write:2")},
)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry("a", "file", size=100), ""),
        (Entry("a", "file", size=101), "a is 101 bytes long, but it never had more than 100"),
        (Entry("a", "dir"), "a is a dir, which it never was"),
        (Entry("a", "symlink", target="to"), ""),
        (Entry("a", "symlink", target="away"), "a points to 'away', but no operation made it point there"),
        (Entry("a", "char", target="1:3"), ""),
        (Entry("a", "char", target="1:5"), "a is the char device 1:5, but no operation made that"),
        (Entry("a", "file", xattrs=(("user.x", "31"),)), ""),
        (Entry("a", "file", xattrs=(("user.x", "32"),)), "attribute user.x of a is b'2', but no operation set it so"),
        (Entry("a", "file", xattrs=(("user.z", "31"),)), "attribute user.z of a is b'1', but no operation set it so"),
        (Entry("a", "file", xattrs=(("security.selinux", "31"),)), ""),
    ],
)
def test_what_an_inode_never_was(entry: Entry, said: str) -> None:
    """Attributes that are not the user's come from elsewhere, such as those of SELinux."""
    assert mismatch(PAST, entry) == said


def test_an_entry_that_could_not_be_read_may_be_any_inode() -> None:
    assert mismatch(PAST, Entry("a", "dir", size=101, error=5)) == ""
    assert foreign_range(PAST, Entry("a", "file", size=10, segments=(Segment(0, 10, "stale"),), error=5)) is None


def file(*runs: tuple[int, str]) -> Entry:
    """A file with so many bytes of each source, one after the other."""
    segments: list[Segment] = []
    for length, source in runs:
        start = segments[-1].end if segments else 0
        segments.append(Segment(start, start + length, source))
    return Entry("a", "file", size=segments[-1].end if segments else 0, segments=tuple(segments))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (file(), None),
        (file((10, "write:0"), (10, "write:1")), None),
        (file((5, "write:0"), (10, "write:2"), (5, "write:1")), None),
        (file((20, "zero")), None),
        (file((20, "zero"), (80, "zero")), None),
        (file((10, "write:0"), (10, "error:5")), None),
        (file((11, "write:0")), (10, 11)),
        (file((5, "zero"), (5, "write:1"), (10, "write:1")), (5, 10)),
        (file((4, "write:2"), (1, "zero")), (0, 5)),
        (file((20, "stale")), (0, 5)),
        (file((20, "zero"), (10, "other")), (20, 30)),
        (file((20, "zero"), (10, "write:1")), (20, 30)),
    ],
)
def test_the_first_stretch_of_bytes_that_were_never_there(entry: Entry, expected: tuple[int, int] | None) -> None:
    """A stretch lies between places where the inode's own bytes change. It is foreign if any of its bytes is."""
    assert foreign_range(PAST, entry) == expected


def test_only_a_file_has_foreign_bytes() -> None:
    assert foreign_range(PAST, replace(file((20, "stale")), type="symlink")) is None
