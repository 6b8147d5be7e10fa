"""Recorders, and recording a workload with one of them."""

import hashlib
import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from postcrash._core import Recording, write_recording
from postcrash.harness.errors import GuestLostError, InfrastructureError, RecordersDisagreeError, UsageError
from postcrash.harness.files.places import quick_folder
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import Workload
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.agreement import UNSTABLE, compare
from postcrash.recorders.fua import events_with_fua
from postcrash.recorders.trace import behind_set_up
from postcrash.store.json_codec import Json
from postcrash.targets import Mount

_DISAGREEMENTS_SHOWN = 3
_RUNS_MAX = 3
"""A workload is run at most this many times until both recorders agree."""


@dataclass(frozen=True, slots=True)
class Job:
    """A workload to run on a base image. `mount` says how to mount it; `held` seeds its held-back completions."""

    base: Path
    mount: Mount
    workload: Workload
    held: int | None


class Recorder(Protocol):
    """Records the requests of a run."""

    @property
    def name(self) -> str:
        """The name that `--recorder` takes."""
        ...

    @property
    def device(self) -> str:
        """The path of the requests, as recordings describe it."""
        ...

    def settings(self, settings: MachineSettings) -> MachineSettings:
        """Settings for guests on which this recorder can record."""
        ...

    def can_record(self, machine: Machine) -> bool:
        """Whether this recorder can record on the machine's guests."""
        ...

    def record(self, machine: Machine, job: Job, out: Path, metadata: Json) -> Workload:
        """Run the job and write the recording to `out`. See `record`."""
        ...


class CrashDisk:
    """The crash disk alone."""

    name = crash_disk.NAME
    device = "crash disk over virtio-blk (no FUA: FUA is write + flush; bios joined and cut)"

    def settings(self, settings: MachineSettings) -> MachineSettings:
        """Any guest."""
        return settings

    def can_record(self, machine: Machine) -> bool:
        """On every machine."""
        return True

    def record(self, machine: Machine, job: Job, out: Path, metadata: Json) -> Workload:
        """See `Recorder`."""
        return machine.record(job.base, job.mount, job.workload, out, metadata, job.held)


class DmLogWrites:
    """dm-log-writes in the guest. It alone sees bios and their FUA; the times are those at the crash disk."""

    name = dm_log_writes.NAME
    device = "crash disk over virtio-blk, with the requests and the FUA that dm-log-writes saw above it"

    def settings(self, settings: MachineSettings) -> MachineSettings:
        """Guests with a disk for the log."""
        return replace(settings, log_disk=True)

    def can_record(self, machine: Machine) -> bool:
        """Where there is a disk for the log."""
        return machine.has_log_disk

    def record(self, machine: Machine, job: Job, out: Path, metadata: Json) -> Workload:
        """See `Recorder`.

        Raises RecordersDisagreeError if dm-log-writes and the crash disk never agree on a run.
        """
        for _ in range(_RUNS_MAX - 1):
            with suppress(RecordersDisagreeError):
                return _record_both(machine, job, out, metadata)
        return _record_both(machine, job, out, metadata)


_BEST_FIRST: tuple[Recorder, ...] = (DmLogWrites(), CrashDisk())
AUTO = "auto"
CRASH_DISK, DM_LOG_WRITES = CrashDisk.name, DmLogWrites.name
RECORDERS = (AUTO, *sorted(recorder.name for recorder in _BEST_FIRST))
"""The names that can be requested. `auto` is the best recorder that the kernel has."""


def recorder_named(name: str) -> Recorder:
    """The recorder of that name, which is not `auto`."""
    return next(recorder for recorder in _BEST_FIRST if recorder.name == name)


def settings_for_recorders(settings: MachineSettings, recorders: Iterable[str]) -> MachineSettings:
    """Settings for guests on which each of `recorders` can record."""
    for name in recorders:
        settings = settings if name == AUTO else recorder_named(name).settings(settings)
    return settings


def record(
    machine: Machine,
    base: Path,
    mount: Mount,
    workload: Workload,
    out: Path,
    metadata: Json,
    *,
    held: int | None,
    recorder: str,
) -> Workload:
    """Run `workload` on `base` and write the recording to `out`. Returns the workload as it was run.

    Errors as of `Machine.record` and `Recorder.record`.
    After GuestLostError, `out` has what the crash disk saw until then.

    If `recorder` is `auto`, the recording's metadata name the recorder that was chosen on this machine.
    """
    if recorder == AUTO:
        chosen = next(known for known in _BEST_FIRST if known.can_record(machine) and _has_disks_of(known, mount))
    else:
        chosen = recorder_named(recorder)
        if not _has_disks_of(chosen, mount):
            raise UsageError(f"{chosen.name} records one disk, and this target has {len(mount.disks)}")
    metadata = {**metadata, "recorder": chosen.name, "requested": recorder, "device": chosen.device, "held": held}
    return chosen.record(machine, Job(base, mount, workload, order_of(workload, held)), out, metadata)


def _has_disks_of(recorder: Recorder, mount: Mount) -> bool:
    """Whether the recorder can record the disks. dm-log-writes logs one."""
    return recorder.name == CRASH_DISK or not mount.disks


def order_of(workload: Workload, held: int | None) -> int | None:
    """The seed of the workload's completions. None: they are not held back.

    Workloads have different orders, so that an order which shows nothing is not that of all of them. Those that run
    programs all have the order of `held`, because their texts name folders of this machine.
    """
    if held is None or workload.runs_programs:
        return held
    return int.from_bytes(hashlib.sha256(f"{held}\n{workload.to_text()}".encode()).digest()[:8])


def _record_both(machine: Machine, job: Job, out: Path, metadata: Json) -> Workload:
    with scratch(quick_folder()) as folder:
        below, log = folder / "below.pcr", folder / "log"
        for log_set_up in (False, True):
            try:
                ran = machine.record(
                    job.base,
                    job.mount,
                    job.workload,
                    below,
                    metadata,
                    job.held,
                    log=log,
                    log_set_up=log_set_up,
                )
            except GuestLostError:
                shutil.copyfile(below, out)
                raise
            if _merge(below, log, out, metadata, job, log_set_up=log_set_up):
                return ran
    raise AssertionError("a log that has the set-up is enough")


def _merge(below: Path, log: Path, out: Path, metadata: Json, job: Job, *, log_set_up: bool) -> bool:
    """Write the recording of one run. False if a run with the set-up in the log is needed."""
    seen = Recording(below)
    try:
        disk, above = crash_disk.trace(seen), dm_log_writes.trace(log, seen.disk_sectors)
        rest = behind_set_up(disk, above)
        if rest is None and not log_set_up:
            return False
        agreement = compare(
            *(rest or (disk, above)),
            is_stable=job.mount.fstype not in UNSTABLE,
            is_threaded=job.workload.runs_programs,
        )
        _refuse(job.workload, agreement.disagreements)
        events = events_with_fua(seen, agreement, (rest and disk.durable) or 0)
        write_recording(out, seen.disk_sectors, json.dumps(metadata), events)
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{job.workload.name}: {error}") from error
    return True


def _refuse(workload: Workload, disagreements: list[str]) -> None:
    if disagreements:
        shown = "; ".join(disagreements[:_DISAGREEMENTS_SHOWN])
        more = len(disagreements) - _DISAGREEMENTS_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        raise RecordersDisagreeError(
            f"{workload.name}: the crash disk and dm-log-writes do not agree on this run: {shown}{rest}"
        )
