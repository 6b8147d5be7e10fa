"""What two recorders saw of one run is compared from where the set-up had become durable."""

from dataclasses import replace

import pytest

from postcrash.recorders.trace import Mark, Request, Trace, behind_set_up


def write(submitted: int | None, completed: int | None) -> Request:
    return Request(kind="write", sector=8, sectors=8, submitted=submitted, completed=completed)


def marks(*positions: int) -> tuple[Mark, ...]:
    """Operations that start and return in turn."""
    return tuple(
        Mark("returned" if place % 2 else "started", place // 2, position) for place, position in enumerate(positions)
    )


DISK = Trace("disk", (write(1, 3), write(2, 4), write(11, 13)), marks(0, 5, 10, 14), durable=6)
ABOVE = Trace("above", (write(100, None), write(None, 120), write(None, 130)), marks(90, 105, 115, 135), durable=110)


def test_what_came_before_is_left_out_of_both() -> None:
    above = replace(ABOVE, requests=(write(100, 104), *ABOVE.requests[1:]))
    rest = behind_set_up(DISK, above)
    assert rest == (
        replace(DISK, requests=DISK.requests[2:], marks=DISK.marks[2:]),
        replace(above, requests=above.requests[1:], marks=above.marks[2:]),
    )


def test_the_recorder_above_may_have_begun_there() -> None:
    above = replace(ABOVE, requests=ABOVE.requests[1:], marks=ABOVE.marks[2:])
    rest = behind_set_up(DISK, above)
    assert rest is not None
    assert rest[1] == above
    assert [len(trace.marks) for trace in rest] == [2, 2]


@pytest.mark.parametrize(
    ("request_at", "is_known"),
    [
        ((1, 6), True),
        ((6, 6), True),
        ((1, 7), False),
        ((6, None), False),
        ((1, None), False),
        ((7, None), True),
        ((7, 9), True),
        ((None, 6), True),
        ((None, 7), True),
        ((None, None), True),
    ],
)
def test_a_request_that_was_under_way_then_leaves_it_open(
    request_at: tuple[int | None, int | None], is_known: bool
) -> None:
    """The set-up was durable at 6. A request without a position counts as a later one."""
    disk = replace(DISK, requests=(write(*request_at),))
    above = replace(ABOVE, requests=())
    assert (behind_set_up(disk, above) is not None) == is_known


def test_a_request_whose_submission_was_not_seen_is_placed_by_its_completion() -> None:
    above = replace(ABOVE, requests=(write(None, 110), write(None, 111)))
    rest = behind_set_up(DISK, above)
    assert rest is not None
    assert rest[1].requests == (write(None, 111),)


@pytest.mark.parametrize("which", ["disk", "above"])
def test_a_position_that_is_not_known_leaves_it_open(which: str) -> None:
    above = replace(ABOVE, requests=())
    assert behind_set_up(DISK, above) is not None
    disk = replace(DISK, durable=None) if which == "disk" else DISK
    assert behind_set_up(disk, replace(above, durable=None) if which == "above" else above) is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_recorder_that_missed_marks_is_not_compared(count: int) -> None:
    above = replace(ABOVE, requests=(), marks=ABOVE.marks[:count])
    assert behind_set_up(DISK, above) is None


def test_a_set_up_without_operations_behind_it_leaves_no_marks() -> None:
    disk = replace(DISK, requests=(), marks=DISK.marks[:2])
    rest = behind_set_up(disk, replace(ABOVE, requests=(), marks=()))
    assert rest is not None
    assert [trace.marks for trace in rest] == [(), ()]
