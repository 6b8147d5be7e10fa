"""The verdict on a hunt needs evidence: whatever was left out, or never put to the test, makes it undecided."""

from typing import Any

import pytest

from postcrash.harness.hunting.causes import Cause
from postcrash.harness.hunting.hunt_result import NAMES_MAX, HuntResult
from postcrash.model import Verdict

CAUSE = Cause("P1", "PATH is missing", ())
OTHER = Cause("P1", "PATH is missing", ("inode table",))


def whole(**changes: Any) -> HuntResult:
    """A hunt that covered everything."""
    result = HuntResult(run=3)
    result.tested.update({"P1": 2})
    result.counts.update({"states": 2**70, "covered": 2**70, "states_within": 5, "covered_within": 5})
    for name, value in changes.items():
        if isinstance(value, dict):
            getattr(result, name).update(value)
        else:
            setattr(result, name, value)
    return result


def test_all_holds_where_nothing_was_left_out() -> None:
    assert whole().verdict is Verdict.HOLDS
    assert whole(same=4, alike=5, new=1, notes=["slow"], lacking={"reflink": 2}).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    "changes",
    [
        {"not_run": 1},
        {"cut_short": 1},
        {"interrupted": True},
        {"refused": {"ENOSPC": 1}},
        {"undecided": {"P1: no time": 1}},
        {"counts": {"covered": -1}},
        {"counts": {"covered_within": -1}},
    ],
)
def test_what_was_left_out_is_undecided(changes: dict[str, Any]) -> None:
    assert whole(**changes).verdict is Verdict.UNDECIDED
    broken = whole(**changes)
    broken.found(CAUSE, (1, 1), "f-1", "w")
    assert broken.verdict is Verdict.VIOLATED


def test_nothing_holds_where_no_judge_was_put_to_the_test() -> None:
    result = whole()
    result.tested.clear()
    assert result.verdict is HuntResult().verdict is Verdict.UNDECIDED


def test_the_smallest_workload_stands_for_its_group() -> None:
    result = HuntResult()
    for size, finding in (((2, 5), "f-1"), ((1, 9), "f-2"), ((1, 9), "f-3"), ((2, 1), "f-4")):
        assert result.is_better(CAUSE, size) == (finding in ("f-1", "f-2"))
        result.found(CAUSE, size, finding, f"w-{finding}")
    (group,) = result.groups.values()
    assert (group.finding, group.size, group.count) == ("f-2", (1, 9), 4)
    assert group.names == ["w-f-1", "w-f-2", "w-f-3", "w-f-4"]


def test_each_cause_has_a_group_of_its_own() -> None:
    result = HuntResult()
    result.found(CAUSE, (1, 1), "f-1", "w")
    assert result.is_better(OTHER, (9, 9))
    result.found(OTHER, (9, 9), "f-2", "w")
    assert {cause: group.finding for cause, group in result.groups.items()} == {CAUSE: "f-1", OTHER: "f-2"}


def test_of_many_workloads_some_are_named_and_all_are_counted() -> None:
    result = HuntResult()
    for number in range(NAMES_MAX + 5):
        result.found(CAUSE, (1, number), "f-1", f"{number}")
    (group,) = result.groups.values()
    assert (group.count, group.names) == (NAMES_MAX + 5, [f"{number}" for number in range(NAMES_MAX)])
