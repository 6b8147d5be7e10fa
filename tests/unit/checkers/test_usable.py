"""The first step of use after recovery that failed is told, and use that nobody asked for decides nothing."""

import errno

import pytest

from postcrash.checkers.usable import Usable
from postcrash.model import Entry, History, Observation, Tree, Usage, parse_workload
from postcrash.model.judge import CannotTellError, holds, violated

HISTORY = History(parse_workload("creat a", "litmus"), 1, 1)
TREE = Tree([Entry(".", "dir")])


@pytest.mark.parametrize(
    ("used", "message"),
    [
        (Usage("", 0), ""),
        (Usage("rmdir A", errno.ENOTEMPTY), "rmdir A failed with ENOTEMPTY (Directory not empty)"),
        (Usage("read new/file", 4000), "read new/file failed with errno 4000 (Unknown error 4000)"),
    ],
)
def test_a_step_that_failed_is_told_with_its_error(used: Usage, message: str) -> None:
    expected = violated(f"use after recovery: {message}") if message else holds()
    assert Usable().examine(HISTORY, Observation(0, TREE, used=used)) == expected


def test_use_that_nobody_asked_for_decides_nothing() -> None:
    with pytest.raises(CannotTellError, match="not used after recovery"):
        Usable().examine(HISTORY, Observation(0, TREE))
    assert not Usable().check(HISTORY, Observation(0, TREE)).relevant


def test_use_counts_though_the_recovered_tree_was_empty() -> None:
    assert Usable().check(HISTORY, Observation(0, TREE, used=Usage("", 0))).relevant
