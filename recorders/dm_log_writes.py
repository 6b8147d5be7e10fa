"""Traces of Linux's dm-log-writes, and of QEMU's blklogwrites, which logs in the same format."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

from postcrash._core import Recording, import_dm_log_writes, scan_dm_log_writes
from postcrash.recorders import crash_disk
from postcrash.recorders.trace import Mark, Trace

NAME = "dm-log-writes"
SECTOR_BYTES = 512
_MARK = re.compile(r"(started|returned):([0-9]{1,9})")
"""What the agent writes; every other mark is left out."""


def trace(log: Path, disk_sectors: int, recorder: str = NAME) -> Trace:
    """What the log of a disk with `disk_sectors` (512 B) holds. Positions are places in the log.

    The kernel logs a write when a flush that covers it is submitted, a FUA write, a flush or a mark at once: what was
    completed earlier, but is not covered yet, stands behind it. Device mapper hands a write with PREFLUSH and FUA on as
    a flush, with FUA too, and a FUA write. Errors as of `scan_dm_log_writes`.
    """
    marks = []
    summary = scan_dm_log_writes(log, disk_sectors)
    for place, text in summary["marks"]:
        if found := _MARK.fullmatch(text):
            marks.append(Mark("started" if found[1] == "started" else "returned", int(found[2]), place))
    with tempfile.TemporaryDirectory(prefix="postcrash-") as folder:
        out = Path(folder) / "log.pcr"
        import_dm_log_writes(log, disk_sectors, out, "{}")
        imported = crash_disk.trace(Recording(out))
    requests = []
    fua_flushes = set(summary["fua_flushes"])
    for request in imported.requests:
        # Zeros in a large write are read as write-zeroes, which dm-log-writes does not let through.
        if request.kind == "write-zeroes":
            request = replace(request, kind="write", data=bytes(request.sectors * SECTOR_BYTES))
        fua = request.fua or (request.kind == "flush" and request.submitted in fua_flushes)
        requests.append(replace(request, fua=fua, submitted=None))
    return Trace(recorder, tuple(requests), tuple(marks))
