"""Traces of QEMU's blklogwrites, which logs in the format of dm-log-writes. QEMU writes one log as long as it runs."""

from dataclasses import replace
from pathlib import Path

from postcrash.recorders import dm_log_writes
from postcrash.recorders.trace import Trace

NAME = "blklogwrites"


def trace(log: Path, disk_sectors: int) -> Trace:
    """What the log of a disk with `disk_sectors` (512 B) holds.

    QEMU logs a request when it is submitted and does not tell when it is completed, so both positions are its place in
    the log. It never sets FUA and has no marks. Raises the errors of `scan_dm_log_writes`.
    """
    found = dm_log_writes.requests(log, disk_sectors)
    return Trace(NAME, tuple(replace(request, completed=request.submitted) for request in found), ())
