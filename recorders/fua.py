"""Makes a recording with FUA: requests as dm-log-writes saw them, at the times when the crash disk saw them."""

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from postcrash._core import Recording
from postcrash.recorders.events import MarkEvent, recording_events
from postcrash.recorders.matches import Agreement

if TYPE_CHECKING:
    from postcrash._core import Content, NewEvent


def events_with_fua(recording: Recording, agreement: Agreement, start: int = 0) -> Iterator["NewEvent"]:
    """Events for `write_recording`, from a crash disk's recording and its agreement with a trace from above virtio-blk.

    The flushes that FUA writes became are gone, and a FUA write is completed where its flush was. The traces must
    agree. Of the events before number `start` only the marks and the contents count. The contents come as if they had
    been written at once, in the order of the disk, so that they are the same in every run. No request may be under way
    at `start`.
    """
    marks = list(_marks(recording))
    ids = count()
    yield from (mark for number, mark in marks if number < start)
    yield from _written(recording.contents(start), ids)
    timed: list[tuple[float, int, NewEvent]] = [(number, 0, mark) for number, mark in marks if number >= start]
    for found in sorted(agreement.placed, key=lambda found: found.submitted):
        id, request = next(ids), found.request
        event: NewEvent
        match request.kind:
            case "write":
                assert request.data is not None
                event = ("write", id, request.sector, request.data, request.fua, False)
            case "flush":
                event = ("flush", id)
            case kind:
                event = ("zero", id, request.sector, request.sectors, kind == "discard")
        timed.append((found.submitted, id, event))
        if found.completed is not None:
            timed.append((found.completed, id, ("complete", id)))
    yield from (event for _, _, event in sorted([*timed, *_calls(recording, start)], key=lambda item: item[:2]))


def _marks(recording: Recording) -> Iterator[tuple[int, MarkEvent]]:
    """The marks, each with its place among the events."""
    for number, event in enumerate(recording_events(recording)):
        if isinstance(event, MarkEvent):
            yield number, event


def _calls(recording: Recording, start: int) -> Iterator[tuple[float, int, "NewEvent"]]:
    """The notes of calls, each between the events where it stands."""
    for number, note in enumerate(recording.calls()):
        if note[0] >= start:
            yield note[0] - 0.5, number, note[1:]


def _written(contents: list["Content"], ids: Iterator[int]) -> Iterator["NewEvent"]:
    for content in contents:
        id = next(ids)
        if content[0] == "data":
            yield ("write", id, content[1], content[2], False, False)
        else:
            yield ("zero", id, content[1], content[2], False)
        yield ("complete", id)
