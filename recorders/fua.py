"""A recording with FUA: requests as dm-log-writes saw them, when the crash disk saw them."""

from collections.abc import Iterator
from typing import Any

from postcrash._core import Recording
from postcrash.recorders.agreement import Agreement

Event = tuple[Any, ...]


def events_with_fua(recording: Recording, agreement: Agreement) -> Iterator[Event]:
    """Events for `write_recording`, of a crash disk's recording and its agreement with a trace from above virtio-blk.

    The flushes that FUA writes became are gone; a FUA write is completed where its flush was. The traces must agree.
    """
    events = enumerate(recording.events())
    timed: list[tuple[int, int, Event]] = [
        (number, 0, event) for number, event in events if event[0] in ("started", "returned", "durable")
    ]
    placed = sorted(agreement.placed, key=lambda found: found.submitted)
    for id, found in enumerate(placed):
        request = found.request
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
    return (event for _, _, event in sorted(timed, key=lambda item: item[:2]))
