"""The fsck checker: clean, not clean, and not looked at."""

import pytest

from postcrash.checkers.fsck import Fsck
from postcrash.model import Entry, FsckResult, History, Observation, Tree, Verdict, parse_workload
from postcrash.model.judge import CannotTellError, Opinion, violated

HISTORY = History(parse_workload("creat a", "litmus"), 1, 1)
TREE = Tree([Entry(".", "dir")])


def check(result: FsckResult | None) -> Opinion:
    return Fsck().examine(HISTORY, Observation(0, TREE, (), result))


@pytest.mark.parametrize("result", [FsckResult(0, "clean"), FsckResult(0, "")])
def test_clean_is_fine(result: FsckResult) -> None:
    assert check(result).verdict is Verdict.HOLDS


def test_where_it_was_not_run_nothing_is_known() -> None:
    with pytest.raises(CannotTellError, match="fsck was not run"):
        check(None)


@pytest.mark.parametrize("status", [1, 2, 4, 8, 12, 193, 255])
def test_any_other_status_is_found(status: int) -> None:
    expected = violated(f"fsck exits with status {status}: Pass 1 | Inode 12 has wrong size")
    assert check(FsckResult(status, "Pass 1\n\n  Inode 12 has wrong size\n")) == expected


NOT_UNMOUNTED = """fsck.fat 4.2 (2021-01-31)
Dirty bit is set. Fs was not properly unmounted and some data may be corrupt.
 Automatically removing dirty bit.

Leaving filesystem unchanged.
/dev/vda: 2 files, 1/4341 clusters
"""


def test_that_vfat_was_in_use_says_nothing_but_anything_else_does() -> None:
    assert check(FsckResult(1, NOT_UNMOUNTED)).verdict is Verdict.HOLDS
    lost = check(FsckResult(1, NOT_UNMOUNTED.replace("Leaving", "Reclaimed 2 unused clusters (8192 bytes).\nLeaving")))
    assert lost.verdict is Verdict.VIOLATED
    assert "Reclaimed 2 unused clusters" in lost.message
    assert check(FsckResult(1, "")).verdict is Verdict.VIOLATED
    assert check(FsckResult(1, " \n\n")).verdict is Verdict.VIOLATED


def test_long_output_is_shortened() -> None:
    finding = check(FsckResult(4, "x" * 1000))
    assert finding == violated(f"fsck exits with status 4: {'x' * 300}…")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        *((-9, "killed by signal 9"), (129, "killed by signal 1"), (139, "killed by signal 11")),
        *((192, "killed by signal 64"), (128, "shared library error"), (127, "no such program")),
        *((16, "usage or syntax error"), (32, "cancelled")),
    ],
)
def test_a_checker_that_did_not_look_decides_nothing(status: int, reason: str) -> None:
    with pytest.raises(CannotTellError, match=reason):
        check(FsckResult(status, "sh: e2fsck: not found"))


def test_one_that_was_killed_decides_nothing_though_what_it_said_by_then_is_harmless() -> None:
    with pytest.raises(CannotTellError, match="killed by signal 9"):
        check(FsckResult(137, NOT_UNMOUNTED))
