"""Which flush of the disk each flush and each FUA write had. QEMU leaves some out, and threads share some."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash._core import export_dm_log_writes
from postcrash.recorders import blklogwrites, crash_disk
from postcrash.recorders.agreement import compare
from postcrash.recorders.fua import events_with_fua
from postcrash.recorders.matches import Agreement

from ...qemu_log import LogPosition
from ...whole_run import whole_run
from .conftest import DISK_SECTORS, Event, Steps, block, compared, log_of, numbered, recording
from .flushing_threads import FlushingThreads


def write(id: int, sector: int, fua: bool = False) -> list[Event]:
    return [("write", id, sector, block("abcdefgh"[id % 8]), fua, False), ("complete", id)]


def flush(id: int) -> list[Event]:
    return [("flush", id), ("complete", id)]


def with_qemu(folder: Path, below: Steps, above: Steps) -> Agreement:
    """The agreement of QEMU's log, which has no marks, with that of dm-log-writes."""
    export_dm_log_writes(recording(folder, "below.pcr", numbered(below)), folder / "qemu", [])
    return compare(blklogwrites.trace(folder / "qemu", DISK_SECTORS), log_of(folder, numbered(above)))


A, B = write(0, 0), write(1, 16)
A_FUA, B_FUA = write(0, 0, fua=True), write(1, 16, fua=True)
F = flush(9)


@pytest.mark.parametrize(
    ("below", "above", "left_out"),
    [
        ([A, F, B, F], [A, F, B, F], 0),
        ([A, F, B, F], [F, A, F, F, F, B, F, F], 4),
        ([A, F], [A_FUA, F], 1),
        ([A, F, F], [A, F, F, F], 1),
        ([A, B, F], [A, B, F, F], 1),
        ([A, B, F], [A_FUA, B, F], 1),
        ([A, B, F], [A_FUA, F, B_FUA], 1),
    ],
)
def test_qemu_leaves_out_a_flush_that_has_nothing_to_flush(
    tmp_path: Path, below: Steps, above: Steps, left_out: int
) -> None:
    agreement = with_qemu(tmp_path, below, above)
    assert agreement.disagreements == []
    assert agreement.explained["nothing to flush"] == left_out


@pytest.mark.parametrize(
    ("below", "above", "reason"),
    [
        ([A, F, B], [A, F, B, F], "blklogwrites has no flush for it"),
        ([A, B, F], [A, F, B, F], "flush at 5 before it comes too late"),
        ([A, B, F], [A, F, F, B, F], "flush at 5 before it comes too late"),
        ([A], [A_FUA], "blklogwrites has no flush for it"),
        ([A, F, B], [A_FUA, B, F], "blklogwrites has no flush for it"),
        ([A, B], [A_FUA, F, B_FUA], "blklogwrites has no flush for it"),
        ([A, F, F, B, F], [A, F, B, F], "belongs to nothing in dm-log-writes"),
        ([A, F, B, F, F], [A, F, F, B, F], "belongs to nothing in dm-log-writes"),
        ([A, F, B, F], [F, A, B, F], "belongs to nothing in dm-log-writes"),
        ([A, F], [A, F, B], "is not in blklogwrites"),
        ([A, F, B], [A, F], "is not in dm-log-writes"),
    ],
)
def test_a_flush_or_write_that_qemu_may_not_leave_out(tmp_path: Path, below: Steps, above: Steps, reason: str) -> None:
    found = with_qemu(tmp_path, below, above).disagreements
    assert any(reason in text for text in found), found


def test_the_flush_of_a_fua_write_within_an_operation_is_not_behind_the_end(tmp_path: Path) -> None:
    start, end = [("durable",), ("started", 0)], [("returned", 0, 0)]
    assert compared(tmp_path, [*start, *end, *A], [*start, *end, *A_FUA]).disagreements == []
    (found,) = compared(tmp_path, [*start, *A, *end], [*start, *end, *A_FUA]).disagreements
    assert "crash-disk has no flush for it" in found


@pytest.mark.parametrize(("flushes", "disagreements"), [(0, 2), (1, 0), (2, 0), (3, 1)])
def test_two_fua_writes_share_a_flush_or_have_two(tmp_path: Path, flushes: int, disagreements: int) -> None:
    found = compared(tmp_path, numbered([A, B, *[F] * flushes]), numbered([A_FUA, B_FUA])).disagreements
    assert len(found) == disagreements


@pytest.mark.parametrize(
    ("below", "above", "shared"),
    [
        ([A, F, B, F], [A_FUA, F, B, F], 1),
        ([A, F, B, F], [A, F, F, B, F], 1),
        ([A, F, B, F], [A_FUA, F, F, B_FUA, F], 3),
        ([A, F, F, B, F], [A_FUA, F, B, F], 0),
        ([A, F, B, F, F], [A_FUA, F, B, F, F], 1),
        ([A, B, F], [A, F, B_FUA], 1),
        ([A, B, F, F], [A, F, B_FUA, F], 1),
    ],
)
def test_one_flush_may_serve_several_threads(tmp_path: Path, below: Steps, above: Steps, shared: int) -> None:
    """It serves those that were asked for before it began. One thread asks for the next when its last one has ended."""
    agreement = compared(tmp_path, numbered(below), numbered(above), is_threaded=True)
    assert agreement.disagreements == []
    assert agreement.explained["one for several"] == shared
    assert bool(compared(tmp_path, numbered(below), numbered(above)).disagreements) == bool(shared)


@pytest.mark.parametrize(
    ("below", "above"), [([A, F, B], [A_FUA, B, F]), ([A, F, B], [A, B, F]), ([A, F, F, B, F], [A, F, B, F])]
)
def test_no_flush_serves_what_was_written_after_it(tmp_path: Path, below: Steps, above: Steps) -> None:
    assert compared(tmp_path, numbered(below), numbered(above), is_threaded=True).disagreements


def test_a_flush_that_device_mapper_cut_off_a_write_ends_before_it(tmp_path: Path) -> None:
    """The write's own flush is another one, whatever threads there are."""
    asked = log_of(tmp_path, numbered([F, A_FUA]))
    cut_off = replace(asked, requests=(replace(asked.requests[0], fua=True), asked.requests[1]))
    for below, disagreements in (([F, F, A, F], 0), ([F, A, F], 1)):
        ours = crash_disk.trace(recording(tmp_path, "below.pcr", numbered(below)))
        assert len(compare(ours, cut_off, is_threaded=True).disagreements) == disagreements


def test_what_is_cut_off_a_write_may_share_its_first_flush(tmp_path: Path) -> None:
    """As threads do on xfs: the flush before a log write is that of a thread, and a second one follows (REQ_FUA)."""
    asked = log_of(tmp_path, numbered([A, F, F, B_FUA]))
    requests = (*asked.requests[:2], replace(asked.requests[2], fua=True), asked.requests[3])
    for below, shared in (([A, F, F, B, F], 1), ([A, F, F, F, B, F], 0)):
        ours = crash_disk.trace(recording(tmp_path, "below.pcr", numbered(below)))
        agreement = compare(ours, replace(asked, requests=requests), is_threaded=True)
        assert (agreement.disagreements, agreement.explained["one for several"]) == ([], shared)


@pytest.mark.parametrize(("before", "place"), [(False, 0), (True, 1)])
def test_if_flushes_can_be_shared_in_two_ways_writes_are_stable_last(tmp_path: Path, before: bool, place: int) -> None:
    """The flush between the writes can be that of a thread, and X stable then; or only that of the FUA write."""
    plain: list[list[Event]] = [[("write", 2, 16, block("x"), False, False), ("complete", 2)]] * before
    below, above = numbered([*plain, A, F, B, F]), numbered([*plain, A_FUA, F, B, F])
    agreement = compared(tmp_path, below, above, is_threaded=True)
    flushes = [number for number, event in enumerate(below) if event[0] == "flush"]
    asked = min(each.submitted for each in agreement.placed if each.request.kind == "flush")
    assert (agreement.disagreements, asked) == ([], flushes[place])


def test_a_flush_that_serves_a_thread_too_is_there_for_all(tmp_path: Path) -> None:
    """The recording has the FUA write, and a flush while it is under way."""
    below = recording(tmp_path, "below.pcr", numbered([A, F, B, F]))
    above = log_of(tmp_path, numbered([A_FUA, F, B, F]))
    made = list(events_with_fua(below, compare(crash_disk.trace(below), above, is_threaded=True)))
    assert [event[0] for event in made] == [
        "durable",
        "write",
        "flush",
        "complete",
        "complete",
        "write",
        "complete",
        "flush",
        "complete",
    ]


def test_each_part_of_a_fua_write_may_have_a_flush(tmp_path: Path) -> None:
    parts = [[("write", 0, sector, block("a"), False, False), ("complete", 0)] for sector in (0, 8)]
    above = numbered([[("write", 0, 0, block("a", 2), True, False), ("complete", 0)]])
    for between, behind, disagreements in ((0, 1, 0), (1, 1, 0), (2, 1, 1), (1, 2, 1), (1, 0, 2)):
        below = numbered([parts[0], *[F] * between, parts[1], *[F] * behind])
        assert len(compared(tmp_path, below, above).disagreements) == disagreements


def test_only_qemu_may_leave_out_a_flush(tmp_path: Path) -> None:
    below, above = numbered([A, F]), numbered([A, F, F])
    (found,) = compared(tmp_path, below, above).disagreements
    assert "crash-disk has no flush for it" in found


def test_the_log_of_one_run_is_cut_out_of_qemus(tmp_path: Path) -> None:
    log, other, out = tmp_path / "log", tmp_path / "other", tmp_path / "out"
    first, second = (
        recording(tmp_path, f"{sector}.pcr", [("durable",), *numbered([write(0, sector), F])[1:]]) for sector in (0, 16)
    )
    export_dm_log_writes(first, log, [])
    export_dm_log_writes(second, other, [])
    start = LogPosition.end_of(log)
    head, tail = log.read_bytes(), other.read_bytes()
    entries = int.from_bytes(head[16:24], "little") + int.from_bytes(tail[16:24], "little")
    log.write_bytes(head[:16] + entries.to_bytes(8, "little") + head[24:] + tail[512:])
    start.cut(log, out)
    assert blklogwrites.trace(out, DISK_SECTORS) == blklogwrites.trace(other, DISK_SECTORS)
    assert len(blklogwrites.trace(log, DISK_SECTORS).requests) == 4


def test_what_the_crash_disk_did_not_see_has_no_known_place_against_a_flush(tmp_path: Path) -> None:
    start, end = [("durable",), ("started", 0)], [("returned", 0, 0)]
    behind = [(event[0], id, *event[2:]) for id, events in enumerate([F, B, F], 1) for event in events]
    log = log_of(tmp_path, [*start, *A, *end, *behind])
    seen = compare(crash_disk.trace(recording(tmp_path, "disk.pcr", [*start, *A, *end])), log)
    assert seen.disagreements == []
    for qemu, disagreements in (([A, F, B, F], 0), ([A, F, B], 0), ([A, B], 2)):
        export_dm_log_writes(recording(tmp_path, "below.pcr", numbered(qemu)), tmp_path / "qemu", [])
        found = compare(blklogwrites.trace(tmp_path / "qemu", DISK_SECTORS), whole_run(log, seen)).disagreements
        assert len(found) == disagreements, found


C = write(2, 32)
UNDER_WAY: list[Event] = [("durable",), A[0], ("flush", 1), A[1], ("complete", 1), *numbered([[], [], C, F])[1:]]
"""The crash disk's view: A is under way at the first flush, C is not."""
LATER: list[Event] = [
    ("durable",),
    ("flush", 0),
    ("write", 1, *A[0][2:]),
    ("complete", 0),
    ("complete", 1),
    *UNDER_WAY[5:],
]
"""The crash disk's view: the first flush is under way at A."""


@pytest.mark.parametrize(
    ("disk", "above", "qemu", "reason"),
    [
        (numbered([A, B, F, F]), [A, F, B, F], [A, B, F], None),
        (numbered([A, F, B, F]), [A, F, B, F], [A, B, F], "flush at 5 before it comes too late"),
        (UNDER_WAY, [F, A, C, F], [A, F, C, F], None),
        (UNDER_WAY, [F, A, C, F], [A, C, F], None),
        (UNDER_WAY, [F, A, C, F], [F, A, C, F], None),
        (LATER, [F, A, C, F], [A, F, C, F], None),
        (LATER, [F, A, C, F], [F, A, C, F], None),
        (UNDER_WAY, [F, A, C, F], [A, F, C], "blklogwrites has no flush for it"),
        (UNDER_WAY, [F, A, C, F], [A, F, F, C, F], "belongs to nothing in dm-log-writes"),
        (UNDER_WAY, [F, A, C, F], [F, C, F], "is not in blklogwrites"),
    ],
)
def test_qemu_may_or_may_not_flush_a_write_under_way_at_a_flush(
    tmp_path: Path, disk: list[Event], above: Steps, qemu: Steps, reason: str | None
) -> None:
    """The crash disk tells: was the write submitted before the flush completed, and the flush before the write did?"""
    log = log_of(tmp_path, numbered(above))
    seen = compare(crash_disk.trace(recording(tmp_path, "disk.pcr", disk)), log)
    assert seen.disagreements == []
    export_dm_log_writes(recording(tmp_path, "below.pcr", numbered(qemu)), tmp_path / "qemu", [])
    found = compare(blklogwrites.trace(tmp_path / "qemu", DISK_SECTORS), whole_run(log, seen)).disagreements
    assert found == [] if reason is None else any(reason in text for text in found), found


@pytest.mark.parametrize("seed", range(200))
def test_no_write_is_stable_before_it_was(tmp_path: Path, seed: int) -> None:
    """In a random run of threads. A crash state would be missing. If two ways explain the run, it may be later."""
    run = FlushingThreads(seed)
    agreement = compared(tmp_path, run.below, run.above, is_threaded=True)
    flushes = [(each.submitted, _end(each.completed)) for each in agreement.placed if each.request.kind == "flush"]
    found: dict[int, float] = {}
    for each in agreement.placed:
        if each.request.kind == "write":
            ends = [end for begin, end in flushes if begin > _end(each.parts[0].completed)]
            ends += [_end(each.completed)] * each.request.fua
            found[each.request.sector] = min(ends, default=math.inf)
    true = run.stable()
    assert all(found[sector] >= true[sector] for sector in true) or agreement.disagreements


def _end(completed: int | None) -> float:
    return math.inf if completed is None else completed
