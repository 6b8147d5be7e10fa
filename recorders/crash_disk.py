"""Traces of the crash disk: its recordings hold everything that it saw."""

from typing import Literal

from postcrash._core import Recording
from postcrash.recorders.events import CompletionEvent, recording_events
from postcrash.recorders.trace import Mark, Request, Trace

NAME = "crash-disk"


def trace(recording: Recording) -> Trace:
    """What a recording holds. Positions are numbers of its events.

    Write-zeroes and discards have None as data. Virtio-blk does not carry FUA, so a FUA write is a write and then a
    flush.
    """
    events = recording_events(recording)
    completed = {event.id: number for number, event in enumerate(events) if isinstance(event, CompletionEvent)}
    requests, marks, durable = [], [], None
    for number, event in enumerate(events):
        match event:
            case ("write", id, sector, sectors, fua, preflush):
                data = recording.data(number)
                requests.append(
                    Request(
                        kind="write",
                        sector=sector,
                        sectors=sectors,
                        preflush=preflush,
                        fua=fua,
                        data=data,
                        submitted=number,
                        completed=completed.get(id),
                    )
                )
            case ("zero", id, sector, sectors, discard):
                kind: Literal["discard", "write-zeroes"] = "discard" if discard else "write-zeroes"
                requests.append(
                    Request(kind=kind, sector=sector, sectors=sectors, submitted=number, completed=completed.get(id))
                )
            case ("flush", id, _):
                requests.append(
                    Request(kind="flush", sector=0, sectors=0, submitted=number, completed=completed.get(id))
                )
            case ("started" | "returned" as word, operation, *_):
                marks.append(Mark(word, operation, number))
            case ("durable",):
                durable = number
    return Trace(NAME, tuple(requests), tuple(marks), durable)
