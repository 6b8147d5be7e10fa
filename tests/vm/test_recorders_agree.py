"""Recorders that watch one run agree on it, and a planted difference is found.

With --full: every target, every example, and QEMU too.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from postcrash._core import Recording
from postcrash.harness.guest_root import guest_root
from postcrash.harness.kernel import Kernel, find_kernel, kernel_at
from postcrash.harness.kernels import Stock
from postcrash.harness.machine import Machine
from postcrash.harness.places import cache_folder
from postcrash.harness.recording import DM_LOG_WRITES, record, settings_for_recorders
from postcrash.harness.session import settings_for
from postcrash.model import Workload, WorkloadBuilder, load_workload
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.agreement import RULES, compare
from postcrash.recorders.trace import Request, Trace
from postcrash.targets import TARGETS, base_image, target_named

from .test_cli import ROOT, postcrash

SMALL = (
    WorkloadBuilder()
    .mkdir("D")
    .begin()
    .creat("A")
    .write("A", 0, 12288)
    .fsync("A")
    .rename("A", "D/B")
    .append("D/B", 5000)
    .fsync("D/B")
    .unlink("D/B")
    .build("small")
    .with_tail()
)
EXAMPLES = [load_workload(str(path)).with_tail() for path in sorted((ROOT / "examples").glob("*.ops"))]
JOURNALED = ["ext4-current", "btrfs", "xfs"]
JBD2_COMMIT = bytes.fromhex("c03b399800000002")
XFS_LOG_RECORD = bytes.fromhex("feedbabe")
BTRFS_SUPER_SECTOR, BTRFS_MAGIC_AT, BTRFS_MAGIC = 128, 64, b"_BHRfS_M"


@dataclass(frozen=True)
class Above:
    """What a recorder above the crash disk saw of a run, and what its traces carry besides order and flushes."""

    trace: Trace
    data: bool
    fua: bool


@dataclass(frozen=True)
class Run:
    """One run as each recorder saw it."""

    disk: Trace
    above: list[Above]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    full = metafunc.config.option.full
    if "target" in metafunc.fixturenames:
        names = [target.name for target in TARGETS] if full else JOURNALED
        metafunc.parametrize("target", names)
    if "workload" in metafunc.fixturenames:
        workloads = [SMALL, *EXAMPLES] if full else [SMALL]
        metafunc.parametrize("workload", workloads, ids=lambda workload: workload.name)
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", ["uml", "qemu"] if full else ["uml"], scope="module")


@pytest.fixture(scope="module")
def watched(engine: str) -> Iterator[Machine]:
    """A guest on which every recorder can watch."""
    kernel = find_kernel() if engine == "uml" else newest_image()
    settings = settings_for(kernel, guest_root(kernel, cache_folder()))
    with Machine(settings_for_recorders(settings, [DM_LOG_WRITES]), 0) as booted:
        yield booted


def newest_image() -> Kernel:
    image = Stock(cache_folder()).images()[-1]
    return kernel_at(image.path, image.modules, cache_folder())


def run(machine: Machine, target_name: str, workload: Workload, folder: Path) -> Run:
    """Run a workload once, with all recorders."""
    target = target_named(target_name)
    base = base_image(target, cache_folder() / "bases")
    out, log = folder / "recording.pcr", folder / "log"
    machine.record(base.path, target.mount_wire(), workload, out, {}, log=log)
    recording = Recording(out)
    logged = dm_log_writes.trace(log, recording.disk_sectors)
    return Run(crash_disk.trace(recording), [Above(logged, data=True, fua=True)])


def test_recorders_agree(watched: Machine, tmp_path: Path, target: str, workload: Workload) -> None:
    seen = run(watched, target, workload, tmp_path)
    for above in seen.above:
        agreement = compare(seen.disk, above.trace)
        assert agreement.disagreements == []
        assert agreement.explained.keys() <= RULES.keys()
        found = [placed for placed in agreement.placed if placed.request.kind == "write"]
        assert len(found) > len(workload.operations) / 2


@pytest.mark.parametrize("journaled", JOURNALED)
def test_what_the_file_systems_ask_for_is_seen(watched: Machine, tmp_path: Path, journaled: str) -> None:
    """The file system's own commit records of the operations, found by content: written with FUA, behind a flush."""
    seen = run(watched, journaled, SMALL, tmp_path)
    for above in seen.above:
        marks = [mark.position for mark in above.trace.marks if mark.operation >= len(SMALL.setup)]
        requests = [request for request in above.trace.requests if marks[0] < (request.completed or 0) < marks[-1]]
        commits = [number for number, request in enumerate(requests) if is_commit(request)]
        assert len(commits) >= 2
        for number in commits:
            assert requests[number].fua == above.fua
            assert requests[number - 1].kind == "flush"
    below = [request for request in seen.disk.requests if is_commit(request)]
    assert len(below) >= 2
    assert not any(request.fua for request in below)


def is_commit(request: Request) -> bool:
    """A commit block of jbd2, a log record of xfs, or the first superblock of btrfs."""
    data = request.data or b""
    is_super = request.sector == BTRFS_SUPER_SECTOR and data[BTRFS_MAGIC_AT:].startswith(BTRFS_MAGIC)
    return data.startswith((JBD2_COMMIT, XFS_LOG_RECORD)) or is_super


def faults(trace: Trace, *, data: bool, fua: bool) -> Iterator[tuple[str, Trace]]:
    """The trace without one of its requests, with other data, with another flag; one fault each."""
    for number, request in enumerate(trace.requests):
        before, behind = trace.requests[:number], trace.requests[number + 1 :]
        place = f"{request.kind} {number} at {request.sector}"
        yield f"{place} dropped", replace(trace, requests=before + behind)
        if request.data and data:
            other = replace(request, data=bytes([request.data[0] ^ 1]) + request.data[1:])
            yield f"{place} with other data", replace(trace, requests=(*before, other, *behind))
        if fua and (request.kind == "write" or request.fua):
            other = replace(request, fua=not request.fua)
            yield f"{place} with FUA {other.fua}", replace(trace, requests=(*before, other, *behind))


def test_each_planted_difference_is_found(watched: Machine, tmp_path: Path, target: str) -> None:
    """But where the crash disk lacks the last plain write of all: the log does not tell that it was not made later."""
    seen = run(watched, target, SMALL, tmp_path)
    for above in seen.above:
        end = above.trace.marks[-1].position
        inside = tuple(request for request in above.trace.requests if (request.completed or end) < end)
        rest = above.trace.requests[len(inside) :]
        planted = [
            (what, compare(seen.disk, replace(faulty, requests=faulty.requests + rest)))
            for what, faulty in faults(replace(above.trace, requests=inside), data=above.data, fua=above.fua)
        ]
        planted += [
            (what, compare(faulty, above.trace)) for what, faulty in faults(seen.disk, data=above.data, fua=False)
        ]
        unnoticed = [what for what, agreement in planted if not agreement.disagreements]
        plain = [each for each in compare(seen.disk, above.trace).placed if each.request.data and not each.request.fua]
        last = [f"write {seen.disk.requests.index(part)} at {part.sector} dropped" for part in plain[-1].parts]
        assert set(unnoticed) <= set(last)
        assert len(planted) > 30


@pytest.mark.parametrize("journaled", JOURNALED)
def test_a_recording_with_fua(watched: Machine, tmp_path: Path, journaled: str) -> None:
    """It has the flags of the log, and every operation."""
    target = target_named(journaled)
    base = base_image(target, cache_folder() / "bases")
    out = tmp_path / "recording.pcr"
    record(watched, base.path, target.mount_wire(), SMALL, out, {}, held=None, recorder=DM_LOG_WRITES)
    trace = crash_disk.trace(Recording(out))
    assert [mark.word for mark in trace.marks] == ["started", "returned"] * len(SMALL.operations)
    commits = [number for number, request in enumerate(trace.requests) if is_commit(request) and request.fua]
    assert len(commits) >= 2
    for number in commits:
        assert trace.requests[number - 1].kind == "flush"
    assert '"device": "crash disk over virtio-blk, with the requests and the FUA' in Recording(out).metadata


def test_check_says_what_a_recording_was_made_on(tmp_path: Path) -> None:
    arguments = ("check", str(ROOT / "examples/create-fsync.ops"), "--target", "ext4-current", "--judge", "durability")
    reports = [
        json.loads(postcrash(tmp_path, *arguments, "--recorder", recorder, "--json", "-").stdout)
        for recorder in ("crash-disk", "dm-log-writes")
    ]
    assert [report["verdict"] for report in reports] == ["holds", "holds"]
    assert "no FUA" in reports[0]["device"]
    assert "the FUA that dm-log-writes saw" in reports[1]["device"]
    assert reports[0]["recording"] != reports[1]["recording"]
