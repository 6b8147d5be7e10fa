"""A recovery after a crash within recovery is compared with the first: everything that its tree shows."""

from dataclasses import replace
from typing import Any

import pytest

from postcrash.checkers.recovery import difference
from postcrash.model import Entry, FsckResult, Observation, Segment, Tree

ROOT = Entry(".", "dir", 0o755, nlink=2, inode=1)
RUNS = (Segment(0, 10, "write:0"), Segment(10, 20, "zero"))
A = Entry("a", "file", 0o644, nlink=1, inode=2, size=20, segments=RUNS, xattrs=(("user.x", "31"),))


def seen(*entries: Entry, mount_errno: int = 0, **more: Any) -> Observation:
    return Observation(mount_errno, Tree(entries), **more)


def test_the_same_tree_is_no_difference() -> None:
    assert difference(seen(ROOT, A), seen(ROOT, replace(A))) == ""
    assert difference(seen(mount_errno=5), seen(mount_errno=5)) == ""


def test_the_kernel_log_and_fsck_are_not_compared() -> None:
    told = seen(ROOT, A, klog=("<4>replayed",), fsck=FsckResult(4, "bad"), repair=FsckResult(1, ""))
    assert difference(seen(ROOT, A), told) == ""


@pytest.mark.parametrize(("first", "second"), [(0, 117), (117, 0), (5, 117)])
def test_a_mount_ends_as_it_did(first: int, second: int) -> None:
    said = f"mount fails with errno {second}; without the crash its errno was {first}"
    assert difference(seen(mount_errno=first), seen(mount_errno=second)) == said


def test_a_name_that_is_lost_or_comes_up_is_told_first_in_order_of_paths() -> None:
    b = replace(A, path="b")
    assert difference(seen(ROOT, A, b), seen(ROOT)) == "a is gone; without the crash it was not"
    assert difference(seen(ROOT), seen(ROOT, b, A)) == "a is there; without the crash it was not"
    assert difference(seen(ROOT, A, b), seen(ROOT, A)) == "b is gone; without the crash it was not"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("type", "fifo", "type is fifo; without the crash it was file"),
        ("mode", 0o600, "mode is 384; without the crash it was 420"),
        ("nlink", 2, "nlink is 2; without the crash it was 1"),
        ("inode", 3, "inode is 3; without the crash it was 2"),
        ("size", 19, "size is 19; without the crash it was 20"),
        ("xattrs", (), "xattrs is (); without the crash it was (('user.x', '31'),)"),
        ("target", "b", "target is b; without the crash it was "),
        ("error", 5, "error is 5; without the crash it was 0"),
    ],
)
def test_each_thing_that_an_entry_shows_is_compared(field: str, value: Any, said: str) -> None:
    assert difference(seen(ROOT, A), seen(ROOT, replace(A, **{field: value}))) == f"a: {said}"


def test_contents_are_compared_byte_by_byte() -> None:
    changed = replace(A, segments=(Segment(0, 9, "write:0"), Segment(9, 20, "zero")))
    assert difference(seen(ROOT, A), seen(ROOT, changed)) == (
        "a: its content is write:0 from 0 to 9, zero from 9 to 20; "
        "without the crash it was write:0 from 0 to 10, zero from 10 to 20"
    )


def test_what_is_beneath_a_directory_that_changed_is_told_behind_it() -> None:
    folder, inside = Entry("D", "dir", 0o755, nlink=2, inode=3), replace(A, path="D/a")
    assert difference(seen(ROOT, folder, inside), seen(ROOT, replace(folder, mode=0))) == (
        "D: mode is 0; without the crash it was 493"
    )
