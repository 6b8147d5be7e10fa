"""Making a recording, by the recorder that was asked for."""

import json
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from postcrash._core import Recording, write_recording
from postcrash.harness.errors import GuestLostError, InfrastructureError, RecordersDisagreeError
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.harness.places import quick_folder
from postcrash.model import Workload
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.agreement import UNSTABLE, compare
from postcrash.recorders.fua import events_with_fua
from postcrash.recorders.trace import behind_set_up

AUTO = "auto"
CRASH_DISK, DM_LOG_WRITES = crash_disk.NAME, dm_log_writes.NAME
DEVICES = {
    CRASH_DISK: "crash disk over virtio-blk (no FUA: FUA is write + flush; bios joined and cut)",
    DM_LOG_WRITES: "crash disk over virtio-blk, with the requests and the FUA that dm-log-writes saw above it",
}
"""Recorders, and what a recording of theirs says of the path that it was made on."""
RECORDERS = (AUTO, *DEVICES)
"""What can be asked for. `auto` is dm-log-writes where the kernel has it: it alone sees bios and their FUA."""
_DISAGREEMENTS_SHOWN = 3
_RUNS_MAX = 3
"""A workload is run so many times until what two recorders saw agrees."""


def settings_for_recorders(settings: MachineSettings, recorders: Iterable[str]) -> MachineSettings:
    """Guests on which each of `recorders` can record."""
    return replace(settings, log_disk=settings.log_disk or DM_LOG_WRITES in set(recorders))


def record(
    machine: Machine,
    base: Path,
    mount: dict[str, Any],
    workload: Workload,
    out: Path,
    metadata: dict[str, Any],
    *,
    held: int | None,
    recorder: str,
) -> None:
    """Run `workload` on `base` and write the recording to `out`. Errors as of `Machine.record`.

    After GuestLostError, `out` has what the crash disk saw until then.

    The recording's metadata name the recorder that `auto` stands for on this machine.
    With dm-log-writes: RecordersDisagreeError where what it saw and what the crash disk saw cannot be of one run.
    """
    asked = recorder
    if recorder == AUTO:
        recorder = DM_LOG_WRITES if machine.has_log_disk else CRASH_DISK
    metadata = {**metadata, "recorder": recorder, "asked": asked, "device": DEVICES[recorder], "held": held}
    if recorder == CRASH_DISK:
        machine.record(base, mount, workload, out, metadata, held)
        return
    for _ in range(_RUNS_MAX - 1):
        with suppress(RecordersDisagreeError):
            _record_both(machine, base, mount, workload, out, metadata, held)
            return
    _record_both(machine, base, mount, workload, out, metadata, held)


def _record_both(
    machine: Machine,
    base: Path,
    mount: dict[str, Any],
    workload: Workload,
    out: Path,
    metadata: dict[str, Any],
    held: int | None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="postcrash-", dir=quick_folder()) as folder:
        below, log = Path(folder) / "below.pcr", Path(folder) / "log"
        for log_set_up in (False, True):
            try:
                machine.record(base, mount, workload, below, metadata, held, log=log, log_set_up=log_set_up)
            except GuestLostError:
                shutil.copyfile(below, out)
                raise
            if _merge(below, log, out, metadata, workload, mount["fstype"], log_set_up=log_set_up):
                return


def _merge(
    below: Path, log: Path, out: Path, metadata: dict[str, Any], workload: Workload, fstype: str, *, log_set_up: bool
) -> bool:
    """Write the recording of one run; False if the log would have to have the set-up too."""
    seen = Recording(below)
    try:
        disk, above = crash_disk.trace(seen), dm_log_writes.trace(log, seen.disk_sectors)
        rest = behind_set_up(disk, above)
        if rest is None and not log_set_up:
            return False
        agreement = compare(*(rest or (disk, above)), is_stable=fstype not in UNSTABLE)
        _refuse(workload, agreement.disagreements)
        events = events_with_fua(seen, agreement, (rest and disk.durable) or 0)
        write_recording(out, seen.disk_sectors, json.dumps(metadata), events)
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{workload.name}: {error}") from error
    return True


def _refuse(workload: Workload, disagreements: list[str]) -> None:
    if disagreements:
        shown = "; ".join(disagreements[:_DISAGREEMENTS_SHOWN])
        more = len(disagreements) - _DISAGREEMENTS_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        raise RecordersDisagreeError(
            f"{workload.name}: the crash disk and dm-log-writes do not agree on this run: {shown}{rest}"
        )
