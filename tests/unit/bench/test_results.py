"""Ratios are taken round by round, and a goal is met only by what was measured."""

from pathlib import Path

import pytest

from side_by_side.goals import GOALS, Goal
from side_by_side.results import Results
from side_by_side.settings import ASYNCHRONOUS, EAGER, XSYNC


@pytest.fixture
def results() -> Results:
    """Three rounds of which each is slower than the one before, on both file systems."""
    results = Results({"CPU": "2 of some"})
    for asynchronous, xsync in ((1.0, 1.1), (2.0, 2.0), (4.0, 5.2)):
        results.add(ASYNCHRONOUS.name, {"work, s": asynchronous})
        results.add(XSYNC.name, {"work, s": xsync, "delay, ms": 10 * xsync})
    return results


def test_a_ratio_is_of_the_same_round(results: Results) -> None:
    assert results.ratios("work, s", XSYNC.name) == pytest.approx([1.1, 1.0, 1.3])
    assert results.ratio("work, s", XSYNC.name) == pytest.approx(1.1)
    assert results.ratio("work, s", ASYNCHRONOUS.name, base=XSYNC.name) == pytest.approx(1 / 1.1)


def test_what_was_not_measured_has_no_value(results: Results) -> None:
    assert results.median("work, s", EAGER.name) is None
    assert results.ratio("work, s", EAGER.name) is None
    assert results.ratio("delay, ms", XSYNC.name) is None
    assert results.median("delay, ms", XSYNC.name) == pytest.approx(20)


def test_the_table_has_medians_ratios_and_their_spread(results: Results) -> None:
    lines = results.table([ASYNCHRONOUS.name, XSYNC.name, EAGER.name]).splitlines()
    assert lines[2] == "| work, s | 2 | 2: 1.10 (1.00 to 1.30) | – |"
    assert lines[3] == "| delay, ms | – | 20 | – |"


def test_results_are_read_as_they_were_written(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "figures.json")
    Results({"CPU": "2 of some"}, {"work, s": {}, "rest, s": {}}).write(tmp_path / "older.json")
    read = Results.read([tmp_path / "older.json", tmp_path / "figures.json"])
    assert read == Results(results.machine, {**results.values, "rest, s": {}})


@pytest.mark.parametrize(
    ("goal", "word"),
    [
        (Goal("g", "work, s", 1.2, True), "g: met (1.1)"),
        (Goal("g", "work, s", 1.05, True), "g: not met (1.1)"),
        (Goal("g", "work, s", 1.05, False), "g: met (1.1)"),
        (Goal("g", "delay, ms", 20.0, True, is_ratio=False), "g: met (20)"),
        (Goal("g", "delay, ms", 20.5, False, is_ratio=False), "g: not met (20)"),
        (Goal("g", "other", 1, True), "g: not measured"),
    ],
)
def test_a_goal_says_whether_it_is_met(results: Results, goal: Goal, word: str) -> None:
    assert goal.line(results) == word


def test_no_goal_is_met_by_nothing() -> None:
    assert all(goal.line(Results()).endswith("not measured") for goal in GOALS)
