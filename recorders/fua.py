"""Makes a recording with FUA: requests as dm-log-writes saw them, at the times when the crash disk saw them."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from postcrash._core import Recording
from postcrash.recorders.matches import Agreement

Event = tuple[Any, ...]
_MARKS = frozenset({"started", "returned", "durable"})


def events_with_fua(recording: Recording, agreement: Agreement, start: int = 0) -> Iterator[Event]:
    """Events for `write_recording`, from a crash disk's recording and its agreement with a trace from above virtio-blk.

    The flushes that FUA writes became are gone, and a FUA write is completed where its flush was. The traces must
    agree. Of the events before number `start` only the marks and the contents count. The contents come as if they had
    been written at once, in the order of the disk, so that they are the same in every run. No request may be under way
    at `start`.
    """
    events = recording.events()
    ids = count()
    yield from (event for event in events[:start] if event[0] in _MARKS)
    yield from _written(recording.contents(start), ids)
    timed: list[tuple[float, int, Event]] = [
        (number, 0, event) for number, event in enumerate(events) if number >= start and event[0] in _MARKS
    ]
    for found in sorted(agreement.placed, key=lambda found: found.submitted):
        id, request = next(ids), found.request
        event: Event
        match request.kind:
            case "write":
                event = ("write", id, request.sector, request.data, request.fua, False)
            case "flush":
                event = ("flush", id)
            case kind:
                event = ("zero", id, request.sector, request.sectors, kind == "discard")
        timed.append((found.submitted, id, event))
        if found.completed is not None:
            timed.append((found.completed, id, ("complete", id)))
    yield from (event for _, _, event in sorted([*timed, *_calls(recording, start)], key=lambda item: item[:2]))


def _calls(recording: Recording, start: int) -> Iterator[tuple[float, int, Event]]:
    """The notes of calls, each between the events where it stands."""
    for number, (events, *note) in enumerate(recording.calls()):
        if events >= start:
            yield events - 0.5, number, tuple(note)


def _written(contents: list[tuple[Any, ...]], ids: Iterator[int]) -> Iterator[Event]:
    for kind, sector, content in contents:
        id = next(ids)
        yield ("write", id, sector, content, False, False) if kind == "data" else ("zero", id, sector, content, False)
        yield ("complete", id)
