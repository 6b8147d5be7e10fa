"""Traces of Linux's dm-log-writes."""

import re
from pathlib import Path
from typing import Any

from postcrash._core import read_dm_log_writes
from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.trace import Mark, Request, Trace

NAME = "dm-log-writes"
LOG_MIB = 512
"""The size of the disk for the log of a script. It also needs room for the writes of mkfs."""
_MARK = re.compile(r"(started|returned):([0-9]{1,9})")
"""What the agent writes. Every mark other than these and `_DURABLE` is left out."""
_DURABLE = "durable"


def trace(log: Path, disk_sectors: int) -> Trace:
    """What the log of a disk with `disk_sectors` (512 B) holds. Positions are places in the log.

    The kernel logs a write when a flush that covers it is submitted. It logs a FUA write, a flush or a mark at once. So
    requests that were completed earlier, but are not covered yet, stand behind it. Device mapper turns a write with
    PREFLUSH and FUA into a flush, which has FUA too, and a FUA write. Raises the errors of `scan_dm_log_writes`.
    """
    marks, durable = [], None
    logged = []
    for entry, events in read_dm_log_writes(log, disk_sectors):
        if entry[0] != "mark":
            logged.append(_request(entry, None, events + 1))
        elif found := _MARK.fullmatch(entry[1]):
            marks.append(Mark("started" if found[1] == "started" else "returned", int(found[2]), events))
        elif entry[1] == _DURABLE:
            durable = events
    return Trace(NAME, tuple(logged), tuple(marks), durable)


def requests(log: Path, disk_sectors: int) -> tuple[Request, ...]:
    """The requests of a log. Each is submitted at its place and completed at once. Raises the errors of `trace`."""
    found = read_dm_log_writes(log, disk_sectors)
    return tuple(_request(entry, events, events + 1) for entry, events in found if entry[0] != "mark")


def _request(entry: tuple[Any, ...], submitted: int | None, completed: int) -> Request:
    match entry:
        case ("write", sector, data, fua):
            return Request(
                kind="write",
                sector=sector,
                sectors=len(data) // SECTOR_BYTES,
                fua=fua,
                data=data,
                submitted=submitted,
                completed=completed,
            )
        case ("discard", sector, sectors):
            return Request(kind="discard", sector=sector, sectors=sectors, submitted=submitted, completed=completed)
        case ("flush", fua):
            return Request(kind="flush", sector=0, sectors=0, fua=fua, submitted=submitted, completed=completed)
    raise AssertionError(f"no request: {entry}")
