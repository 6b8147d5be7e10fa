"""The moments of the crash in conftest, and of recordings with one odd thing each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.reports.explanation.explanation import ExplanationError, explain
from postcrash.reports.explanation.timeline import Span, TimedNumber, Timeline, timeline


def times(made: Timeline) -> list[list[tuple[int, int | None, bool]]]:
    return [[(write.span.start, write.span.end, write.is_torn) for write in epoch] for epoch in made.writes]


def test_everything_up_to_the_crash_has_its_moment(crash: Any) -> None:
    made = timeline(crash.finding, crash.recording, crash.base)
    assert made.operations == (
        TimedNumber(3, Span(0, 1)),
        TimedNumber(4, Span(2, 7)),
        TimedNumber(5, Span(8, 9)),
        TimedNumber(6, Span(10, None)),
    )
    assert times(made) == [[(3, 4, False)], [(11, 12, False), (13, 14, False), (15, 16, False)]]
    assert made.flushes == (Span(5, 6), Span(17, None))
    assert (made.ends, made.crash) == ((5, 17), 18)


def test_it_fits_the_explanation(crash: Any) -> None:
    explanation = explain(crash.finding, crash.recording, crash.base)
    made = timeline(crash.finding, crash.recording, crash.base)
    assert [len(epoch.writes) for epoch in explanation.epochs] == [len(epoch) for epoch in made.writes]


def test_both_parts_of_a_write_that_was_kept_in_part_are_torn(crash: Any) -> None:
    finding = replace(crash.finding, choices=((1, 1),))
    assert [torn for _, _, torn in times(timeline(finding, crash.recording, crash.base))[1]] == [
        *(True, True, False, False)
    ]


def test_the_marks_are_those_of_the_finding(crash: Any) -> None:
    """One crash interval has several instants; operation 5 has not returned at each of them."""
    known = intervals(crash.recording, crash.base, "cache")
    (shared,) = (each for each in known if {(5, 4), (5, 5)} <= {instant[1:] for instant in each.instants})

    def progress(started: int, returned: int) -> list[tuple[int, bool]]:
        finding = replace(crash.finding, interval=shared.index, choices=(), started=started, returned=returned)
        made = timeline(finding, crash.recording, crash.base)
        return [(operation.number, operation.span.end is None) for operation in made.operations]

    assert progress(5, 4) == [(3, False), (4, False), (5, True)]
    assert progress(5, 5) == [(3, False), (4, False), (5, False)]


def test_writes_of_the_set_up_that_are_in_flight_come_first(crash: Any, tmp_path: Path) -> None:
    early = ("write", 1, 800, b"\x01" * 4096, False, False)
    late = ("write", 3, 900, b"\x01" * 4096, False, False)
    events: list[tuple[Any, ...]] = [early, ("durable",), ("complete", 1), ("started", 0), late]
    write_recording(tmp_path / "odd.pcr", 4096, "{}", events)
    recording = Recording(tmp_path / "odd.pcr")
    last = intervals(recording, crash.base, "cache")[-1]
    finding = replace(crash.finding, interval=last.index, choices=(), started=1, returned=0)
    made = timeline(finding, recording, crash.base)
    assert times(made) == [[(0, 1, False), (3, None, False)]]
    assert made.operations == (TimedNumber(1, Span(2, None)),)
    assert (made.ends, made.crash) == ((4,), 4)


def test_a_finding_of_another_recording_is_refused(crash: Any) -> None:
    with pytest.raises(ExplanationError, match="crash interval 99"):
        timeline(replace(crash.finding, interval=99), crash.recording, crash.base)
