"""A line of a baseline can go only if everything was run that could show its failure, and nothing was left open."""

from collections.abc import Callable
from typing import Any

import pytest

from postcrash.harness.gate.merging import fixed_lines, unseen_by_all
from postcrash.store.gate_run import NO_SERIES, Failure, FixedLine, Part, Sighting, UnseenLine, series_of

MakePart = Callable[..., Part]
MakeFailure = Callable[..., Failure]
HERE = Sighting("hunt-small", "ext4-current", "cache", "6.1", "")
THERE = HERE._replace(series="6.12")
CAUSE = "c-0123456789abcdef"


def unseen(line: int = 1, *places: Sighting, cause: str = CAUSE, why: str = "why") -> UnseenLine:
    return UnseenLine(line=line, cause=cause, why=why, places=places)


@pytest.mark.parametrize(
    ("label", "series"),
    [
        ("UML 6.1.176", "6.1"),
        ("UML 6.1", "6.1"),
        ("UML 6.10.2", "6.10"),
        ("QEMU/KVM 7.2.0-rc1", "7.2"),
        ("QEMU/TCG 6.1.0-47-amd64", "6.1"),
        ("QEMU/KVM 6", NO_SERIES),
        ("UML mine", NO_SERIES),
        ("", NO_SERIES),
    ],
)
def test_the_series_of_a_kernel(label: str, series: str) -> None:
    assert series_of(label) == series


def test_a_failure_is_seen_at_a_place_that_outlasts_a_new_release(make_part: MakePart) -> None:
    assert make_part(section_digest="a").sighting == HERE._replace(section_digest="a")
    assert make_part(kernel="UML 6.1.177").sighting == make_part(kernel="QEMU/TCG 6.1").sighting == HERE


def test_a_line_is_fixed_where_all_its_places_were_run(make_part: MakePart) -> None:
    both = [make_part(), make_part(kernel="UML 6.12.1")]
    lines = [unseen(3, HERE), unseen(4, HERE, THERE), unseen(5, HERE._replace(model="torn")), unseen(6)]
    assert [each.line for each in fixed_lines(lines, both)] == [3, 4]
    assert [each.line for each in fixed_lines(lines, both[:1])] == [3]
    assert fixed_lines(lines, []) == ()


def test_it_is_told_what_can_go(make_part: MakePart) -> None:
    told = fixed_lines([unseen(7, HERE, cause="c-00000000000000ff", why="a bug")], [make_part()])
    assert told == (FixedLine(line=7, cause="c-00000000000000ff", why="a bug"),)


@pytest.mark.parametrize(
    "other",
    [
        {"name": "other"},
        {"target": "xfs"},
        {"model": "torn"},
        {"kernel": "UML 6.12.1"},
        {"section_digest": "something else"},
    ],
)
def test_another_place_cannot_show_that_a_failure_is_gone(make_part: MakePart, other: dict[str, Any]) -> None:
    assert fixed_lines([unseen(1, HERE)], [make_part(**other)]) == ()
    assert fixed_lines([unseen(1, HERE)], [make_part(**other), make_part()]) != ()


@pytest.mark.parametrize("left", [{"lacking": {"reflink": 1}}, {"not_run": 1}])
def test_nothing_is_fixed_where_something_was_left_out(make_part: MakePart, left: dict[str, Any]) -> None:
    """Not even at other places."""
    elsewhere = make_part(name="other", **left)
    assert fixed_lines([unseen(1, HERE)], [make_part(), elsewhere]) == ()


def test_nothing_is_fixed_where_something_is_undecided(
    make_part: MakePart, make_failure: MakeFailure, make_undecided: MakeFailure
) -> None:
    """What a baseline accepts as undecided is open, too. What is violated is not."""
    for verdict, failures, fixed in (
        ("violated", (make_failure(),), 1),
        ("violated", (make_failure(), make_undecided()), 0),
        ("undecided", (make_undecided(known="accepted"),), 0),
    ):
        parts = [make_part(), make_part(name="other", verdict=verdict, failures=failures)]
        assert len(fixed_lines([unseen(1, HERE)], parts)) == fixed


def test_of_several_shards_all_must_miss_a_failure() -> None:
    first = [unseen(1, HERE), unseen(2)]
    second = [unseen(2, THERE), unseen(3, HERE)]
    assert unseen_by_all([first, second]) == (unseen(2, THERE),)
    assert unseen_by_all([first, second, []]) == ()
    assert unseen_by_all([]) == ()


def test_of_several_shards_the_places_are_joined_whatever_their_order() -> None:
    """A failure may be gone from the one shard's places and be still there at the other's."""
    first = [unseen(9, THERE, HERE), unseen(1, HERE)]
    second = [unseen(1, HERE), unseen(9, HERE._replace(target="xfs"))]
    joined = (unseen(1, HERE), unseen(9, HERE, THERE, HERE._replace(target="xfs")))
    assert unseen_by_all([first, second]) == unseen_by_all([second, first]) == joined
    assert unseen_by_all([first]) == (unseen(1, HERE), unseen(9, HERE, THERE))


@pytest.mark.parametrize("changed", [{"line": 2}, {"cause": "c-00000000000000ff"}, {"why": "another reason"}])
def test_lines_of_shards_are_one_only_if_they_are_the_same(changed: dict[str, Any]) -> None:
    """Shards whose baselines differ have different lines."""
    mine = unseen(1, HERE)
    assert unseen_by_all([[mine], [mine.model_copy(update=changed)]]) == ()
