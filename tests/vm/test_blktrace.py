"""The kernel's own trace of a run has the same requests as the crash disk's recording of the run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.machine import Machine
from postcrash.model import WorkloadBuilder
from postcrash.recorders import crash_disk
from postcrash.recorders.trace import Trace
from postcrash.targets import base_image, target_named

from ..blktrace import read_blktrace
from .test_recorders_agree import is_commit

SECTORS = 8
"""The sectors of a block, which is the largest request that the test disk takes."""
WORKLOAD = (
    WorkloadBuilder()
    .creat("A")
    .write("A", 0, 20000)
    .begin()
    .write("A", 4096, 9000)
    .fsync("A")
    .creat("B")
    .write_osync("B", 0, 12288)
    .rename("B", "A")
    .fsync(".")
    .build("blktrace")
    .with_tail()
)
Steps = list[tuple[Any, ...]]


def steps_of_recording(recording: Recording) -> Steps:
    """Blocks written, flushes and marks, in order."""
    steps: Steps = []
    for event in recording.events():
        if event[0] == "write":
            steps += blocks(event[2], event[3])
        elif event[0] == "flush":
            steps.append(("flush",))
        elif event[0] in ("started", "returned"):
            steps.append((event[0], event[1]))
    return steps


def steps_of_trace(trace: Trace) -> Steps:
    found: list[tuple[int, Steps]] = [(mark.position, [(mark.word, mark.operation)]) for mark in trace.marks]
    for request in trace.requests:
        assert request.submitted is not None and request.completed is not None
        step: Steps = [("flush",)] if request.kind == "flush" else list(blocks(request.sector, request.sectors))
        found.append((request.submitted, step))
    return [step for _, steps in sorted(found, key=lambda each: each[0]) for step in steps]


def blocks(sector: int, sectors: int) -> Iterator[tuple[object, ...]]:
    for start in range(sector, sector + sectors, SECTORS):
        yield "write", start, min(SECTORS, sector + sectors - start)


@pytest.mark.parametrize("name", ["ext4-current", "btrfs", "xfs"])
def test_blktrace_sees_what_the_crash_disk_sees(qemu: Machine, tmp_path: Path, name: str) -> None:
    target = target_named(name)
    base = base_image(target, cache_folder() / "bases")
    out, traced = tmp_path / "recording.pcr", tmp_path / "trace"
    qemu.record(base.path, target.mount, WORKLOAD, out, {}, blktrace=traced)
    content = traced.read_bytes()
    recorded, seen = steps_of_recording(Recording(out)), steps_of_trace(read_blktrace(content))
    assert seen == recorded
    assert sum(step[0] == "write" for step in seen) > 10 and seen.count(("flush",)) > 3
    assert sum(step[0] == "returned" for step in seen) == len(WORKLOAD.operations)
    queued = read_blktrace(content, "queued")
    asked = queued.requests
    mounted = queued.marks[0].position
    places = {request.sector for request in crash_disk.trace(Recording(out)).requests if is_commit(request)}
    writes = [request for request in asked if request.kind == "write" and (request.submitted or 0) > mounted]
    commits = [request for request in writes if request.sector in places]
    assert len(commits) > 2
    assert {(request.preflush, request.fua) for request in commits} == {(name != "btrfs", True)}
    written = [step for step in seen if step[0] == "write"]
    assert sum(request.sectors for request in asked if request.kind == "write") == sum(
        sectors for *_, sectors in written
    )


def test_a_kernel_without_blktrace_says_so(machine: Machine, tmp_path: Path) -> None:
    target = target_named("ext2")
    base = base_image(target, cache_folder() / "bases")
    with pytest.raises(InfrastructureError, match="this kernel has no debugfs, which blktrace needs"):
        machine.record(base.path, target.mount, WORKLOAD, tmp_path / "x.pcr", {}, blktrace=tmp_path / "trace")
