"""Puts the operations, calls and requests of a recording up to a crash on one axis, for pictures.

A recording has an order but no clock. So a moment is the rank of an event among those that are shown, and the crash is
the moment after the last.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

from postcrash._core import Recording
from postcrash.recorders.events import (
    CompletionEvent,
    DurableEvent,
    Event,
    FlushEvent,
    WriteEvent,
    ZeroEvent,
    recording_events,
)
from postcrash.reports.explanation.epochs import RawEpoch, WritePart, crash_event, first_shown, parts_shown, raw_epochs
from postcrash.reports.explanation.explanation import interval_of, shown_calls
from postcrash.store.program_calls import ProgramCall
from postcrash.store.records import Finding


class _Place(NamedTuple):
    """From one place among the recording's events to another."""

    start: float
    end: float | None


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment to another. `end` is None if it was under way at the crash."""

    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class TimedNumber:
    """The time of the operation or system call with this `number` in the explanation."""

    number: int
    span: Span


@dataclass(frozen=True, slots=True)
class TimedWrite:
    """When a write was under way. It `is_torn` if it is what the crash kept or lost of a write that it kept in part."""

    span: Span
    is_torn: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """The moments of everything that an explanation shows.

    crash       the moment of the crash; all others are before it, from 0 on
    operations  operations that had started, in order, without those that had returned before moment 0
    calls       the explanation's system calls that were under way from moment 0 on
    flushes     flush requests, and writes with PREFLUSH
    ends        when each of the explanation's epochs ends
    writes      for each of its epochs, the writes that it shows
    """

    crash: int
    operations: tuple[TimedNumber, ...]
    calls: tuple[TimedNumber, ...]
    flushes: tuple[Span, ...]
    ends: tuple[int, ...]
    writes: tuple[tuple[TimedWrite, ...], ...]


def timeline(finding: Finding, recording: Recording, base_path: str | PathLike[str]) -> Timeline:
    """Returns the moments of what `explain` returns for the same arguments. Raises `ExplanationError`."""
    interval = interval_of(finding, recording, base_path)
    crash = crash_event(interval, finding.started, finding.returned)
    raw = raw_epochs(recording, interval, frozenset(interval.lost(finding.choices)), crash)
    return _timed(recording_events(recording), crash, raw, shown_calls(finding, recording, interval))


def _timed(events: list[Event], crash: int, raw: list[RawEpoch], calls: list[ProgramCall]) -> Timeline:
    shown = raw[first_shown(raw) :]
    first = min([event for epoch in shown for event in _submitted(epoch)] or [crash])
    if first_shown(raw) == 0:
        first = min(first, events.index(DurableEvent()) + 1)
    spans = _spans(events[:crash])
    operations = _operations(events[:crash])
    operations = [(number, span) for number, span in operations if span.end is None or span.end >= first]
    under_way = [(call.number, _Place(call.begins, call.ends)) for call in calls]
    under_way = [(number, span) for number, span in under_way if span.end is None or span.end >= first]
    flushes = [spans[index] for index in range(first, crash) if _is_flush(events[index])]
    torn = {event for epoch in raw for event in _torn(epoch.parts)}
    writes = [[(_whole(part, spans), torn & _origins(part)) for part in parts_shown(epoch)] for epoch in shown]
    used = [
        *flushes,
        *(span for _, span in [*operations, *under_way]),
        *(span for epoch in writes for span, _ in epoch),
    ]
    ends = {event for span in used for event in (span.start, span.end) if event is not None}
    moments = sorted(event for event in ends if event >= first)

    def moment(event: float) -> int:
        return bisect_left(moments, event)

    def moved(span: _Place) -> Span:
        return Span(moment(span.start), None if span.end is None else moment(span.end))

    return Timeline(
        crash=len(moments),
        operations=tuple(TimedNumber(number, moved(span)) for number, span in operations),
        calls=tuple(TimedNumber(number, moved(span)) for number, span in under_way),
        flushes=tuple(map(moved, flushes)),
        ends=tuple(moment(event) for event in _ends(shown, flushes, crash)),
        writes=tuple(tuple(TimedWrite(moved(span), bool(is_torn)) for span, is_torn in epoch) for epoch in writes),
    )


def _spans(events: list[Event]) -> dict[int, _Place]:
    """Returns the time from submission to completion of each request, by the number of its event."""
    started: dict[int, int] = {}
    spans = {}
    for index, event in enumerate(events):
        if isinstance(event, CompletionEvent):
            if (start := started.pop(event.id, None)) is not None:
                spans[start] = _Place(start, index)
        elif isinstance(event, WriteEvent | ZeroEvent | FlushEvent):
            started[event.id] = index
            spans[index] = _Place(index, None)
    return spans


def _operations(events: list[Event]) -> list[tuple[int, _Place]]:
    spans: dict[int, _Place] = {}
    for index, event in enumerate(events):
        match event:
            case ("started", operation):
                spans[operation + 1] = _Place(index, None)
            case ("returned", operation, _):
                spans[operation + 1] = _Place(spans[operation + 1].start, index)
    return list(spans.items())


def _is_flush(event: Event) -> bool:
    return isinstance(event, FlushEvent) or (isinstance(event, WriteEvent) and event.preflush)


def _origins(part: WritePart) -> set[int]:
    return {event for event, _, _ in part.origins}


def _submitted(epoch: RawEpoch) -> Iterable[int]:
    return (event for part in epoch.parts for event in _origins(part))


def _torn(parts: Iterable[WritePart]) -> set[int]:
    """Returns the events of the writes that were kept in part."""
    events = {
        status: {event for part in parts if part.status == status for event in _origins(part)}
        for status in ("kept", "lost")
    }
    return events["kept"] & events["lost"]


def _whole(part: WritePart, spans: dict[int, _Place]) -> _Place:
    """Returns the time from the submission of a part's first request to the completion of its last."""
    own = [spans[event] for event in sorted(_origins(part))]
    ends = [span.end for span in own if span.end is not None]
    return _Place(own[0].start, max(ends) if len(ends) == len(own) else None)


def _ends(shown: list[RawEpoch], flushes: list[_Place], crash: int) -> list[float]:
    """An epoch ends when the flush after its last write is submitted."""
    lasts = [max(_submitted(epoch)) for epoch in shown]
    return [next((flush.start for flush in flushes if flush.start > last), crash) for last in lasts]
