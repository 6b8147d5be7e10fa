"""A recording with FUA: requests as dm-log-writes saw them, when the crash disk saw them."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from postcrash._core import Recording
from postcrash.recorders.agreement import SECTOR_BYTES, Agreement

Event = tuple[Any, ...]
BLOCK = 8
"""Sectors."""
_MARKS = frozenset({"started", "returned", "durable"})


def events_with_fua(recording: Recording, agreement: Agreement, start: int = 0) -> Iterator[Event]:
    """Events for `write_recording`, of a crash disk's recording and its agreement with a trace from above virtio-blk.

    The flushes that FUA writes became are gone; a FUA write is completed where its flush was. The traces must agree.
    Of the events before number `start` only the contents count. So that they are the same in every run, there is a
    write for each block, completed at once, and no flush. No request may be under way there.
    """
    set_up: list[Event] = []
    timed: list[tuple[int, int, Event]] = []
    ids = count()
    for number, seen in enumerate(recording.events()):
        if number < start:
            set_up += [seen] if seen[0] in _MARKS else _set_up(recording, number, seen, ids)
        elif seen[0] in _MARKS:
            timed.append((number, 0, seen))
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
    yield from set_up
    yield from (event for _, _, event in sorted(timed, key=lambda item: item[:2]))


def _set_up(recording: Recording, number: int, event: Event, ids: Iterator[int]) -> list[Event]:
    match event:
        case ("zero", _, sector, sectors, discard):
            id = next(ids)
            return [("zero", id, sector, sectors, discard), ("complete", id)]
        case ("write", _, sector, sectors, _, _):
            data, first = recording.data(number), BLOCK - sector % BLOCK
            cuts = [0, *range(first, sectors, BLOCK), sectors]
            made: list[Event] = []
            for at, end, id in zip(cuts, cuts[1:], ids, strict=False):
                part = data[at * SECTOR_BYTES : end * SECTOR_BYTES]
                made += (("write", id, sector + at, part, False, False), ("complete", id))
            return made
    return []
