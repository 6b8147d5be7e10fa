"""The default recording has what the file system asked for, and does not depend on the host's scheduling."""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, scan_dm_log_writes
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.recording import record
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import Workload, WorkloadBuilder
from postcrash.model.units import BLOCK_SECTORS
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.trace import Request
from postcrash.targets import base_image, target_named

FILES = 24
RUNS = 36
LEAD = 5
LOWEST_PRIORITY = 19
KINDS = {"write": "request", "zero": "request", "flush": "request", "complete": "completion"}
Bio = tuple[str, int, int, bool]
Shape = tuple[Any, ...]


class WatchedMachine(Machine):
    """A machine on which dm-log-writes logs every run to a file of the test, whatever recorder records."""

    log: Path

    def record(self, *arguments: Any, **options: Any) -> Workload:
        """See `Machine.record`."""
        wanted = options.pop("log", None)
        ran = super().record(*arguments, **options, log=self.log)
        if wanted is not None:
            wanted.write_bytes(self.log.read_bytes())
        return ran


@pytest.fixture(scope="module")
def watched() -> Iterator[WatchedMachine]:
    kernel = find_kernel()
    with WatchedMachine(settings_for(kernel, guest_root(kernel, cache_folder()))) as booted:
        yield booted


def bio(request: Request) -> Bio:
    return request.kind, request.sector, request.sectors, request.fua


def asked_for(log: Path, disk_sectors: int) -> tuple[Counter[Bio], Counter[Bio]]:
    """What dm-log-writes saw behind the set-up, each bio except flushes: up to the end, and with unmounting.

    It logs a write when a flush covers it, so requests before the end may be logged behind the end.
    """
    marks = {text: place for place, text in scan_dm_log_writes(log, disk_sectors)["marks"]}
    trace = dm_log_writes.trace(log, disk_sectors)
    behind = [each for each in trace.requests if each.sectors and (each.completed or 0) > marks["durable"]]
    until_done = [each for each in behind if (each.completed or 0) <= marks["done"]]
    return Counter(map(bio, until_done)), Counter(map(bio, behind))


@pytest.mark.parametrize("name", ["ext4-current", "btrfs", "xfs", "f2fs"])
def test_a_recording_has_each_bio_as_the_file_system_made_it(
    watched: WatchedMachine, tmp_path: Path, name: str
) -> None:
    """It has the bio's sectors and its FUA flag. A flush that stands for a FUA write is not counted."""
    builder = WorkloadBuilder().creat("old").begin()
    for number in range(FILES):
        builder.creat(f"file-{number}").append(f"file-{number}", 20000)
    workload = builder.fsync("file-0").rename("file-1", "old").fsync("old").build("several").with_tail()
    target, out, watched.log = target_named(name), tmp_path / "run.pcr", tmp_path / "log"
    base = base_image(target, cache_folder() / "bases")
    record(watched, base.path, target.mount, workload, out, {}, held=None, recorder=Exploration().recorder)
    recording = Recording(out)
    trace = crash_disk.trace(recording)
    assert trace.durable is not None
    behind = [request for request in trace.requests if (request.submitted or 0) > trace.durable]
    recorded = Counter(bio(request) for request in behind if request.sectors)
    wanted, whole = asked_for(watched.log, recording.disk_sectors)
    assert wanted - recorded == Counter()
    assert recorded - whole == Counter()
    assert any(fua for _, _, _, fua in wanted)
    assert any(sectors > BLOCK_SECTORS for _, _, sectors, _ in wanted)
    if name == "xfs":
        assert any(fua and sectors > BLOCK_SECTORS for _, _, sectors, fua in recorded)


@pytest.mark.parametrize("target_name", ["ext4-writeback", "ext4-current"])
def test_what_a_flush_covers_does_not_depend_on_the_host(
    settings: MachineSettings, tmp_path: Path, target_name: str
) -> None:
    """The same requests are under way together, whichever process the host prefers: crash disk or guest.

    The last sync writes back and flushes at once. A disk that completes what it finds in the ring sometimes finds the
    writes first, and then the flush covers them: most often if the guest is the slower one. On a busy host some
    recordings differ, because the guest's own scheduler has the host's clock. So what counts is the usual one.
    """
    builder = WorkloadBuilder().creat("A").append("A", 4096).begin()
    builder.creat("B").write("B", 0, 65536).rename("B", "A").creat("C").fsync("C")
    workload, target = builder.build("replace").with_tail(), target_named(target_name)
    base, out = base_image(target, cache_folder() / "bases"), tmp_path / "run.pcr"
    usual = []
    for slow in ("nobody", "crash disk", "guest"):
        with Machine(settings) as machine:
            lower_priority(machine, slow)
            shapes: Counter[Shape] = Counter()
            while lead(shapes) < LEAD:
                assert shapes.total() < RUNS, f"no recording is the usual one: {sorted(shapes.values())}"
                machine.record(base.path, target.mount, workload, out, {})
                shapes[tuple(together(out))] += 1
            usual.append(max(shapes, key=shapes.__getitem__))
    assert usual == usual[:1] * 3


def lead(shapes: Counter[Shape]) -> int:
    """By how many recordings the most frequent one is ahead of the next one."""
    first, second, *_ = *sorted(shapes.values(), reverse=True), 0, 0
    return first - second


def lower_priority(machine: Machine, slow: str) -> None:
    """Let the host prefer the other process."""
    disk = machine._process.pid
    guests = Path(f"/proc/{disk}/task/{disk}/children").read_text().split()
    for pid in {"nobody": [], "crash disk": [disk], "guest": map(int, guests)}[slow]:
        os.setpriority(os.PRIO_PROCESS, pid, LOWEST_PRIORITY)


def together(path: Path) -> Iterator[tuple[Any, ...]]:
    """The requests behind the set-up: those with no completion between them together, in no order; and the marks."""
    events = [event[:4] if event[0] == "write" else event for event in Recording(path).events()]
    for kind, group in groupby(events[events.index(("durable",)) :], lambda event: KINDS.get(event[0], "mark")):
        if kind == "request":
            yield tuple(sorted((event[0], *event[2:]) for event in group))
        elif kind == "mark":
            yield tuple(group)
