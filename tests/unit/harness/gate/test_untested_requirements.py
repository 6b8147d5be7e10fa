"""What must hold must be put to the test: on each target, kernel and device model."""

from collections.abc import Callable
from typing import Any

import pytest

from postcrash.harness.gate.merging import with_untested_requirements
from postcrash.store.gate_run import TIME_SPENT, Failure, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]


@pytest.fixture
def asking(make_part: MakePart) -> MakePart:
    """A part in which P5 must hold, and that puts it to the test in so many workloads."""

    def make(workloads: int, **about: Any) -> Part:
        return make_part(**{"tested": {"mounts": 9, "P5": workloads}, "hold": {"P5": None}, **about})

    return make


def test_one_part_of_a_target_is_enough(asking: MakePart) -> None:
    parts = asking(0, name="a"), asking(3, name="b")
    assert with_untested_requirements(parts) == parts


def test_each_part_is_undecided_if_none_asks(asking: MakePart) -> None:
    for part in with_untested_requirements([asking(0, name="a"), asking(0, name="b")]):
        assert (part.verdict, part.failures) == ("undecided", (part.untested_requirement("P5"),))
        assert part.failures[0].message == "P5 must hold, and no workload put this to the test"


@pytest.mark.parametrize("other", [{"kernel": "UML 6.12.1"}, {"target": "btrfs"}, {"model": "torn"}])
def test_another_kernel_target_or_model_does_not_ask_for_it(asking: MakePart, other: dict[str, str]) -> None:
    asked, never = with_untested_requirements([asking(3), asking(0, **other)])
    assert (asked.verdict, never.verdict) == ("holds", "undecided")


def test_what_the_baseline_accepts_is_known(asking: MakePart) -> None:
    (part,) = with_untested_requirements([asking(0, hold={"P5": "no workload renames", "P1": None})])
    assert [(each.judge, each.is_new) for each in part.failures] == [("P5", False), ("P1", True)]


def test_it_is_said_once(asking: MakePart) -> None:
    once = with_untested_requirements([asking(0)])
    assert with_untested_requirements(once) == once


def test_a_violated_part_stays_violated(asking: MakePart, make_failure: MakeFailure) -> None:
    (part,) = with_untested_requirements([asking(0, verdict="violated", failures=(make_failure(),))])
    assert (part.verdict, len(part.failures)) == ("violated", 2)


def test_without_time_nobody_knows_what_would_be_put_to_the_test(asking: MakePart, make_undecided: MakeFailure) -> None:
    """A line that accepts it would accept a lack of time."""
    spent = make_undecided(message=f"crash interval N: N of N crash states; {TIME_SPENT}")
    for open_part in (asking(0, not_run=3), asking(0, verdict="undecided", failures=(spent,))):
        parts = asking(0, name="whole"), open_part
        assert with_untested_requirements(parts) == parts
