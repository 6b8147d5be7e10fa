"""Recorders that watch one run agree on it, and a planted difference is found.

With --full: every target, every example, and every kernel of the stock.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import or_
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals
from postcrash.harness.errors import InfrastructureError, OperationFailedError
from postcrash.harness.examination.recording import DM_LOG_WRITES, record, settings_for_recorders
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.engine import Qemu
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.file_systems import has_file_system
from postcrash.harness.guests.kernels.kernel import Kernel, find_kernel
from postcrash.harness.guests.kernels.stock import Stock, choose_kernel
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import Observation, Workload, WorkloadBuilder, load_workload
from postcrash.recorders import blklogwrites, crash_disk, dm_log_writes
from postcrash.recorders.agreement import RULES, UNSTABLE, compare
from postcrash.recorders.trace import Request, Trace
from postcrash.targets import TARGETS, base_image, target_named

from ..blktrace import NAME as BLKTRACE
from ..blktrace import read_blktrace
from ..qemu_log import LogPosition
from ..whole_run import whole_run
from .command import ROOT, postcrash
from .conftest import SERIES, with_all_recorders

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
    .with_tail(checkpoint=False)
)
EXAMPLES = [load_workload(str(path)).with_tail() for path in sorted((ROOT / "examples").glob("*.ops"))]
JOURNALED = ["ext4-current", "btrfs", "xfs"]
NO_LINKS = ("vfat", "exfat")
JBD2_COMMIT = bytes.fromhex("c03b399800000002")
XFS_LOG_RECORD = bytes.fromhex("feedbabe")
BTRFS_SUPER_SECTOR, BTRFS_COPY_SECTOR, BTRFS_MAGIC_AT, BTRFS_MAGIC = 128, 131072, 64, b"_BHRfS_M"


@dataclass(frozen=True)
class WatchedGuest:
    """A guest on which every recorder of its engine can watch, its kernel, and where QEMU logs."""

    machine: Machine
    kernel: Kernel
    qemu_log: Path | None


@dataclass(frozen=True)
class WatchedRun:
    """One run as each recorder saw it: `below` at the disk, `above` by dm-log-writes, `asked` by blktrace.

    `below` are the crash disk, and with QEMU also blktrace and blklogwrites.
    """

    below: list[Trace]
    above: Trace
    asked: Trace | None

    def pairs(self) -> Iterator[tuple[Trace, Trace]]:
        """The pairs to compare: each recorder at the disk, and the one above it. QEMU's log has no marks."""
        for disk in self.below:
            yield disk, self.above if disk.marks else whole_run(self.above, compare(self.below[0], self.above))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    full = metafunc.config.option.full
    if "target" in metafunc.fixturenames:
        names = [target.name for target in TARGETS] if full else JOURNALED
        metafunc.parametrize("target", names)
    if "workload" in metafunc.fixturenames:
        workloads = [SMALL, *EXAMPLES] if full else [SMALL]
        metafunc.parametrize("workload", workloads, ids=lambda workload: workload.name)
    if "engine" in metafunc.fixturenames:
        stocked = Stock(cache_folder()).all() if full else []
        others = [each.name for each in stocked if not each.version.startswith(SERIES)]
        metafunc.parametrize("engine", ["uml", "qemu", *others], scope="module")


@pytest.fixture(scope="module")
def watched(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WatchedGuest]:
    """A guest of that engine, or with that kernel of the stock."""
    if engine == "qemu":
        image = request.getfixturevalue("image")
        yield WatchedGuest(request.getfixturevalue("qemu"), image, request.getfixturevalue("qemu_log"))
        return
    kernel = find_kernel() if engine == "uml" else choose_kernel("auto", engine, cache_folder())
    settings = settings_for(kernel, guest_root(kernel, cache_folder()))
    log = tmp_path_factory.mktemp("qemu") / "log" if isinstance(settings.engine, Qemu) else None
    settings = with_all_recorders(settings, log) if log else settings_for_recorders(settings, [DM_LOG_WRITES])
    with Machine(settings) as booted:
        yield WatchedGuest(booted, kernel, log)


def run(watched: WatchedGuest, target_name: str, workload: Workload, folder: Path) -> WatchedRun:
    """Run a workload once, with all recorders."""
    target = target_named(target_name)
    base = base_image(target, cache_folder() / "bases")
    out, log, traced = folder / "recording.pcr", folder / "log", folder / "trace"
    start = LogPosition.end_of(watched.qemu_log) if watched.qemu_log else None
    blktrace = traced if watched.qemu_log else None
    watched.machine.record(base.path, target.mount, workload, out, {}, log=log, blktrace=blktrace)
    recording = Recording(out)
    below, above = [crash_disk.trace(recording)], dm_log_writes.trace(log, recording.disk_sectors)
    if watched.qemu_log is None or start is None:
        return WatchedRun(below, above, None)
    start.cut(watched.qemu_log, folder / "qemu")
    content = traced.read_bytes()
    below += [read_blktrace(content), blklogwrites.trace(folder / "qemu", recording.disk_sectors)]
    return WatchedRun(below, above, read_blktrace(content, "queued"))


def is_refused(watched: WatchedGuest, target_name: str, workload: Workload, folder: Path) -> bool:
    """Whether the kernel lacks the file system, or the file system lacks an operation. Then the run says so."""
    target = target_named(target_name)
    if not has_file_system(watched.kernel, target.fstype):
        with pytest.raises(InfrastructureError, match="No such device"):
            run(watched, target_name, workload, folder)
        return True
    if target.fstype in NO_LINKS and any(operation.word == "link" for operation in workload.operations):
        with pytest.raises(OperationFailedError, match="failed in the guest with EPERM"):
            run(watched, target_name, workload, folder)
        return True
    return False


def test_recorders_agree(watched: WatchedGuest, tmp_path: Path, target: str, workload: Workload) -> None:
    if is_refused(watched, target, workload, tmp_path):
        return
    seen = run(watched, target, workload, tmp_path)
    for disk, above in seen.pairs():
        agreement = compare(disk, above, is_stable=target_named(target).fstype not in UNSTABLE)
        assert (disk.recorder, agreement.disagreements) == (disk.recorder, [])
        assert agreement.explained.keys() <= RULES.keys()
        written = sum(placed.request.sectors for placed in agreement.placed if placed.request.kind == "write")
        assert written > len(workload.operations)


@pytest.mark.parametrize("journaled", JOURNALED)
def test_recordings_and_recoveries_take_turns(watched: WatchedGuest, tmp_path: Path, journaled: str) -> None:
    """A recording is made on a mapping of the test disk, and crash states are recovered on the disk itself.

    Up to Linux 5.10, btrfs is then one file system on two devices, and one of them is older than btrfs remembers.
    """
    target = target_named(journaled)
    base = base_image(target, cache_folder() / "bases").path
    for _ in range(2):
        run(watched, journaled, SMALL, tmp_path)
        source = Source(tmp_path / "recording.pcr", base, "cache")
        last = len(intervals(Recording(source.recording), base, source.model)) - 1
        for interval in (0, last):
            recover = target.recovery(walk=True, fsck=False)
            executed = watched.machine.execute(source, interval, [], recover)
            assert Observation.from_wire(executed.observation).mount_errno == 0


@pytest.mark.parametrize("journaled", JOURNALED)
def test_what_the_file_systems_ask_for_is_seen(watched: WatchedGuest, tmp_path: Path, journaled: str) -> None:
    """The file system's own commit records of the operations, found by content: written with FUA, behind a flush.

    The recorders in the guest see FUA, those at the disk do not.
    """
    seen = run(watched, journaled, SMALL, tmp_path)
    marks = [mark.position for mark in seen.above.marks if mark.operation >= len(SMALL.setup)]
    requests = [request for request in seen.above.requests if marks[0] < (request.completed or 0) < marks[-1]]
    commits = [number for number, request in enumerate(requests) if is_commit(request)]
    assert len(commits) >= 2
    for number in commits:
        assert requests[number].fua
        assert is_behind_a_flush(requests, number)
    if seen.asked is not None:
        asked = {(request.sector, request.sectors) for request in seen.asked.requests if request.fua}
        assert {(requests[number].sector, requests[number].sectors) for number in commits} <= asked
    for disk in seen.below:
        assert not any(request.fua for request in disk.requests)
        assert disk.recorder == BLKTRACE or sum(map(is_commit, disk.requests)) >= 2


def is_commit(request: Request) -> bool:
    """A commit block of jbd2, a log record of xfs, or the first superblock of btrfs."""
    data = request.data or b""
    is_super = request.sector == BTRFS_SUPER_SECTOR and data[BTRFS_MAGIC_AT:].startswith(BTRFS_MAGIC)
    return data.startswith((JBD2_COMMIT, XFS_LOG_RECORD)) or is_super


def is_behind_a_flush(requests: Sequence[Request], number: int) -> bool:
    """Whether a flush stands before the request, with at most the copy of btrfs' superblock between them."""
    before = (request for request in reversed(requests[:number]) if request.sector != BTRFS_COPY_SECTOR)
    return next(before).kind == "flush"


def faults(trace: Trace, *, data: bool, fua: bool) -> Iterator[tuple[str, Trace]]:
    """The trace with one fault: without one of its requests, with other data, or with another flag."""
    for number, request in enumerate(trace.requests):
        before, behind = trace.requests[:number], trace.requests[number + 1 :]
        place = f"{trace.recorder}: {request.kind} {number} at {request.sector}"
        yield f"{place} dropped", replace(trace, requests=before + behind)
        if request.data and data:
            other = replace(request, data=bytes([request.data[0] ^ 1]) + request.data[1:])
            yield f"{place} with other data", replace(trace, requests=(*before, other, *behind))
        if fua and (request.kind == "write" or request.fua):
            other = replace(request, fua=not request.fua)
            yield f"{place} with FUA {other.fua}", replace(trace, requests=(*before, other, *behind))


def test_each_planted_difference_is_found(watched: WatchedGuest, tmp_path: Path, target: str) -> None:
    """All faults are found except those of `undecidable`. QEMU's log has neither FUA nor the flush that would tell."""
    if is_refused(watched, target, SMALL, tmp_path):
        return
    seen = run(watched, target, SMALL, tmp_path)
    end = seen.above.marks[-1].position
    for disk, above in seen.pairs():
        inside = tuple(request for request in above.requests if not disk.marks or (request.completed or end) < end)
        rest = above.requests[len(inside) :]
        data = disk.recorder != BLKTRACE
        planted = [
            (what, compare(disk, replace(faulty, requests=faulty.requests + rest)))
            for what, faulty in faults(replace(above, requests=inside), data=data, fua=bool(disk.marks))
        ]
        planted += [(what, compare(faulty, above)) for what, faulty in faults(disk, data=data, fua=False)]
        unnoticed = {what for what, agreement in planted if not agreement.disagreements}
        assert (disk.recorder, sorted(unnoticed - undecidable(disk, above, end))) == (disk.recorder, [])
        assert len(planted) > 20


def undecidable(disk: Trace, above: Trace, end: int) -> set[str]:
    """Faults that a comparison cannot notice; the last operation returned at `end` of the trace above.

    If the disk lacks the very last plain writes, or earlier ones to the same sectors, the log does not tell that they
    were not made while unmounting. A write that the log lacks may be an equal one that was made then. A write that was
    completed together with a FUA write may have FUA too, because both may share the flush. In QEMU's log, a flush may
    or may not be there if it is the first behind a FUA write, or if nothing was certainly written since the flush
    before it or up to the flush behind it.
    """
    if disk.marks:
        writes = [request for request in above.requests if request.kind == "write" and not request.fua]
        later = {same_to(disk, request) for request in writes if (request.completed or end) > end}
        doubled = [each for each in writes if (each.completed or end) <= end and same_to(disk, each) in later]
        plain = [each for each in compare(disk, above).placed if each.request.kind == "write" and not each.request.fua]
        tails: list[frozenset[int]] = list(accumulate((sectors(each.request) for each in reversed(plain)), or_))
        lacking = [part for each in plain for part in each.parts if sectors(part) in tails]
        unseen = {dropped(disk, request) for request in lacking} | {dropped(above, request) for request in doubled}
        return unseen | set(sharing_a_flush(disk, above))
    certain = {request for request in above.requests if request.completed is not None and not request.fua}
    fua = {request for request in above.requests if request.fua}
    for placed in compare(disk, above).placed:
        of_disk = fua if placed.request.fua else certain if placed.request in certain else set()
        of_disk.update(placed.parts)
    return {
        dropped(trace, request) for trace in (above, disk) for request in needless_flushes(trace, certain - fua, fua)
    }


def sharing_a_flush(disk: Trace, above: Trace) -> Iterator[str]:
    """Writes that may have FUA too, because the first flush behind them is that of a FUA write."""
    flushes = [request for request in disk.requests if request.kind == "flush"]
    placed = [each for each in compare(disk, above).placed if each.request.kind == "write"]
    of_fua = {each.completed for each in placed if each.request.fua}
    for each in placed:
        behind = (flush for flush in flushes if each.completed is not None and (flush.submitted or 0) > each.completed)
        flush = next(behind, None)
        if not each.request.fua and flush is not None and flush.completed in of_fua:
            yield f"{above.recorder}: write {above.requests.index(each.request)} at {each.request.sector} with FUA True"


def needless_flushes(trace: Trace, certain: set[Request], fua: set[Request]) -> Iterator[Request]:
    """The first flush behind each FUA write, and those with no `certain` write between them."""
    is_behind_fua, is_dirty, latest = False, False, None
    for request in trace.requests:
        if request.kind == "flush":
            if is_behind_fua or not is_dirty:
                yield from filter(None, (request, None if is_dirty else latest))
            is_behind_fua, is_dirty, latest = False, False, request
        else:
            is_behind_fua |= request in fua
            is_dirty |= request in certain or request in fua
    if not is_dirty and latest:
        yield latest


def same_to(disk: Trace, request: Request) -> tuple[object, ...]:
    """What two plain writes have in common if the recorder at the disk cannot tell one from the other."""
    data = None if disk.recorder == BLKTRACE else request.data
    return request.sector, request.sectors, data


def sectors(request: Request) -> frozenset[int]:
    """All sectors that the request writes."""
    return frozenset(range(request.sector, request.sector + request.sectors))


def dropped(trace: Trace, request: Request) -> str:
    """The name of the fault that drops this request."""
    return f"{trace.recorder}: {request.kind} {trace.requests.index(request)} at {request.sector} dropped"


@pytest.mark.parametrize("journaled", JOURNALED)
def test_a_recording_with_fua(watched: WatchedGuest, tmp_path: Path, journaled: str) -> None:
    """It has the flags of the log, and every operation."""
    target = target_named(journaled)
    base = base_image(target, cache_folder() / "bases")
    out = tmp_path / "recording.pcr"
    record(watched.machine, base.path, target.mount, SMALL, out, {}, held=None, recorder=DM_LOG_WRITES)
    trace = crash_disk.trace(Recording(out))
    assert [mark.word for mark in trace.marks] == ["started", "returned"] * len(SMALL.operations)
    commits = [number for number, request in enumerate(trace.requests) if is_commit(request) and request.fua]
    assert len(commits) >= 2
    for number in commits:
        assert is_behind_a_flush(trace.requests, number)
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
