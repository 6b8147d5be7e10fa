"""Traces of Linux's dm-log-writes."""

import re
from dataclasses import replace
from pathlib import Path

from postcrash._core import Recording, import_dm_log_writes, scan_dm_log_writes
from postcrash.recorders import crash_disk
from postcrash.recorders.trace import Mark, Request, Trace

NAME = "dm-log-writes"
SECTOR_BYTES = 512
_MARK = re.compile(r"(started|returned):([0-9]{1,9})")
"""What the agent writes; every other mark but `_DURABLE` is left out."""
_DURABLE = "durable"


def trace(log: Path, disk_sectors: int) -> Trace:
    """What the log of a disk with `disk_sectors` (512 B) holds. Positions are places in the log.

    The kernel logs a write when a flush that covers it is submitted, a FUA write, a flush or a mark at once: what was
    completed earlier, but is not covered yet, stands behind it. Device mapper hands a write with PREFLUSH and FUA on as
    a flush, with FUA too, and a FUA write. Errors as of `scan_dm_log_writes`.
    """
    marks, durable = [], None
    summary = scan_dm_log_writes(log, disk_sectors)
    for place, text in summary["marks"]:
        if found := _MARK.fullmatch(text):
            marks.append(Mark("started" if found[1] == "started" else "returned", int(found[2]), place))
        elif text == _DURABLE:
            durable = place
    fua_flushes = set(summary["fua_flushes"])
    logged = []
    for request in requests(log, disk_sectors):
        fua = request.fua or (request.kind == "flush" and request.submitted in fua_flushes)
        logged.append(replace(request, fua=fua, submitted=None))
    return Trace(NAME, tuple(logged), tuple(marks), durable)


def requests(log: Path, disk_sectors: int) -> tuple[Request, ...]:
    """The requests of a log, by their places: each is submitted there and completed at once. Errors as of `trace`."""
    out = log.with_name(f"{log.name}.pcr")
    import_dm_log_writes(log, disk_sectors, out, "{}")
    try:
        found = crash_disk.trace(Recording(out)).requests
    finally:
        out.unlink()
    # Zeros in a large write are read as write-zeroes, which such a log has as a write.
    return tuple(
        replace(request, kind="write", data=bytes(request.sectors * SECTOR_BYTES))
        if request.kind == "write-zeroes"
        else request
        for request in found
    )
