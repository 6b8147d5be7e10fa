"""What became of each request up to a crash, flush by flush, and which operations had sent nothing."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Interval, Recording, intervals, write_recording
from postcrash.model import Workload, parse_workload, pattern
from postcrash.reports.explanation import epochs
from postcrash.reports.explanation.epochs import (
    RawEpoch,
    WriteDescriptions,
    WritePart,
    crash_event,
    first_shown,
    parts_shown,
    raw_epochs,
    shown_epochs,
    shown_lost,
    shown_parts,
    unsent,
)
from postcrash.store.explanation_data import WriteStatus

Event = tuple[Any, ...]
SECTORS = 4096
SYNC = parse_workload("sync", "w")


class Made:
    """A recording, and its crash intervals on a device model."""

    def __init__(self, folder: Path, events: Iterable[Event], model: str = "cache") -> None:
        base, path = folder / "base.img", folder / "made.pcr"
        base.write_bytes(bytes(SECTORS * 512))
        write_recording(path, SECTORS, "{}", list(events))
        self.recording = Recording(path)
        self.intervals = intervals(self.recording, base, model)

    @property
    def last(self) -> Interval:
        return self.intervals[-1]

    def told(self, *lost: int, interval: int = -1) -> list[tuple[str, list[tuple[int, int, str]]]]:
        """Each epoch's end and its parts: sector, sectors, status."""
        found = self.intervals[interval]
        raw = raw_epochs(self.recording, found, frozenset(lost), found.before_event)
        return [(each.ended, [(part.sector, part.sectors, part.status) for part in each.parts]) for each in raw]


def write(id: int, sector: int, blocks: int = 1, *, fua: bool = False, preflush: bool = False) -> Event:
    return ("write", id, sector, bytes([id]) * 4096 * blocks, fua, preflush)


START: tuple[Event, ...] = (("durable",), ("started", 0))
FLUSHED: tuple[Event, ...] = (write(1, 800), ("complete", 1), ("flush", 2), ("complete", 2))


def test_a_flush_that_is_done_makes_stable_what_had_completed_before_it(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, *FLUSHED, write(3, 904), write(4, 1000), ("complete", 3)))
    assert made.told(1) == [("flush", [(800, 8, "stable")]), ("crash", [(904, 8, "kept"), (1000, 8, "lost")])]


def test_what_completed_after_a_flush_had_begun_is_still_in_flight(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, write(1, 800), ("flush", 2), ("complete", 2), ("complete", 1)))
    assert made.told(0) == [("flush", [(800, 8, "lost")])]


def test_a_flush_that_is_under_way_ends_its_epoch_and_makes_nothing_stable(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, write(1, 800), ("complete", 1), ("flush", 2), write(3, 904)))
    assert made.told(0) == [("flush, under way at the crash", [(800, 8, "lost")]), ("crash", [(904, 8, "kept")])]


def test_flushes_with_nothing_before_them_end_no_epoch(tmp_path: Path) -> None:
    nothing: list[Event] = [("flush", 7), ("complete", 7), ("flush", 8), ("complete", 8)]
    made = Made(tmp_path, (*START, *nothing, *FLUSHED, ("flush", 9), ("complete", 9), write(3, 904)))
    assert [ended for ended, _ in made.told()] == ["flush", "crash"]


def test_each_flush_ends_the_epoch_before_it(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, write(3, 904), ("flush", 4), *FLUSHED, write(5, 1000)))
    assert made.told() == [
        ("flush, under way at the crash", [(904, 8, "kept")]),
        ("flush", [(800, 8, "stable")]),
        ("crash", [(1000, 8, "kept")]),
    ]


def test_what_came_after_the_crash_is_not_told(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, *FLUSHED, write(3, 904)))
    (crash,) = (each.index for each in made.intervals if [piece[1] for piece in each.pieces] == [800])
    assert made.told(0, interval=crash)[0][1] == [(800, 8, "lost")]
    assert [parts for _, parts in made.told(interval=crash)] == [[(800, 8, "kept")]]


def test_a_write_that_waits_for_its_own_flush_is_lost(tmp_path: Path) -> None:
    """It is not in flight, so the interval has no piece of it."""
    made = Made(tmp_path, (*START, write(1, 800), ("complete", 1), write(2, 904, preflush=True)))
    number = next(each.index for each in made.intervals if [piece[1] for piece in each.pieces] == [800])
    waits = [("flush, under way at the crash", [(800, 8, "kept")]), ("crash", [(904, 8, "lost")])]
    assert made.told(interval=number) == waits


def test_fua_makes_its_own_write_stable_and_no_other(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, write(1, 800), ("complete", 1), write(2, 904, fua=True), ("complete", 2)))
    assert made.told(0) == [("crash", [(800, 8, "lost"), (904, 8, "stable")])]


@pytest.mark.parametrize("unfinished", [write(1, 800), ("zero", 1, 800, 8, True), write(1, 800, fua=True)])
def test_a_replay_of_a_log_loses_what_never_completed(tmp_path: Path, unfinished: Event) -> None:
    """The interval has no piece of it. A drive that persists in the order of submission may have it already."""
    made = Made(tmp_path, (*START, unfinished, write(2, 904, fua=True), ("complete", 2)), "prefix")
    assert made.told() == [("crash", [(800, 8, "lost"), (904, 8, "stable")])]
    ordered = Made(tmp_path, (*START, unfinished, write(2, 904, fua=True), ("complete", 2)), "ordered")
    assert ordered.told() == [("crash", [(800, 8, "stable"), (904, 8, "stable")])]


def test_what_is_behind_a_barrier_that_is_not_passed_is_lost(tmp_path: Path) -> None:
    """The first interval lasts to the end of the recording, and its crash may come before the last write."""
    marks: list[Event] = [("returned", 0, 0), ("started", 1), write(4, 304), ("complete", 4)]
    made = Made(tmp_path, (*START, *FLUSHED, write(3, 904), ("complete", 3), *marks), "barrier")
    first = next(each for each in made.intervals if len(each.instants) == 3)
    for crash, sectors in ((8, [800, 904]), (9, [800, 904]), (12, [800, 904, 304])):
        raw = raw_epochs(made.recording, first, frozenset([0]), crash)
        parts = [(part.sector, part.status) for epoch in raw for part in epoch.parts]
        assert parts == [(sector, "lost") for sector in sectors]
    assert made.told(0) == [("flush", [(800, 8, "stable")]), ("crash", [(904, 8, "lost"), (304, 8, "kept")])]


def test_the_set_up_is_told_only_as_far_as_it_is_in_flight(tmp_path: Path) -> None:
    early: list[Event] = [write(1, 0), ("complete", 1), ("flush", 2), ("complete", 2), write(3, 104), write(4, 200)]
    made = Made(tmp_path, (*early, *START, ("zero", 5, 304, 8, False), ("zero", 6, 400, 16, True)))
    told = raw_epochs(made.recording, made.last, frozenset((0, 3)), made.last.before_event)
    assert [(part.kind, part.sector, part.sectors, part.status, part.during) for part in told[0].parts] == [
        ("write", 104, 8, "lost", 0),
        ("write", 200, 8, "kept", 0),
        ("write-zeroes", 304, 8, "kept", 1),
        ("discard", 400, 8, "lost", 1),
        ("discard", 408, 8, "kept", 1),
    ]


def test_parts_of_a_write_have_the_bytes_that_were_written_there(tmp_path: Path) -> None:
    content = b"".join(bytes([number]) * 4096 for number in range(1, 5))
    made = Made(tmp_path, (*START, ("write", 1, 800, content, False, False), ("write", 2, 832, content, False, False)))
    (epoch,) = raw_epochs(made.recording, made.last, frozenset((1, 2)), made.last.before_event)
    assert [(part.sector, part.sectors, part.status) for part in epoch.parts] == [
        *((800, 8, "kept"), (808, 16, "lost"), (824, 40, "kept")),
    ]
    parts = [part.data(made.recording) for part in epoch.parts]
    assert parts == [content[:4096], content[4096:12288], content[12288:] + content]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ((write(1, 0),), (write(2, 16),)),
        ((write(1, 8),), (write(2, 0),)),
        ((write(1, 0),), (("zero", 2, 8, 8, True),)),
        ((write(1, 0),), (write(2, 8, fua=True),)),
        ((write(1, 0, fua=True),), (write(2, 8, fua=True),)),
        ((write(1, 0),), (("returned", 0, 0), write(2, 8))),
    ],
)
def test_only_like_writes_that_follow_each_other_are_one(
    tmp_path: Path, first: tuple[Event, ...], then: tuple[Event, ...]
) -> None:
    made = Made(tmp_path, (*START, *first, *then))
    assert [len(parts) for _, parts in made.told()] == [2]


def part(sector: int, status: WriteStatus, sectors: int = 8) -> WritePart:
    return WritePart(((0, 0, sectors),), "zeros", sector=sector, sectors=sectors, flags="", during=0, status=status)


def epoch(*statuses: WriteStatus) -> RawEpoch:
    return RawEpoch([part(16 * number, status) for number, status in enumerate(statuses)], "flush")


def test_in_a_long_epoch_what_was_lost_counts_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left keeps its order."""
    monkeypatch.setattr(epochs, "EPOCH_WRITES_MAX", 3)
    long = epoch("stable", "kept", "lost", "stable", "kept", "lost", "kept")
    assert [each.sector for each in parts_shown(long)] == [16, 32, 80]
    short = epoch("stable", "stable", "lost")
    assert parts_shown(short) == short.parts


@pytest.mark.parametrize(
    ("stable", "open_", "first"), [(0, 0, 0), (2, 0, 0), (9, 0, 6), (3, 1, 0), (9, 1, 6), (9, 40, 9), (0, 50, 10)]
)
def test_a_few_stable_epochs_come_before_the_first_that_is_open(stable: int, open_: int, first: int) -> None:
    raw = [*(epoch("stable") for _ in range(stable)), *(epoch("kept") for _ in range(open_))]
    assert (epochs.STABLE_EPOCHS_MAX, epochs.EPOCHS_MAX) == (3, 40)
    assert first_shown(raw) == first


def words(folder: Path, names: dict[WritePart, str] | None = None) -> WriteDescriptions:
    return WriteDescriptions(Made(folder, START).recording, SYNC, names or {})


def test_epochs_count_from_the_first_of_all_and_say_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "EPOCH_WRITES_MAX", 2)
    raw = [*(epoch("stable") for _ in range(5)), epoch("lost", "kept", "stable")]
    shown, omitted = shown_epochs(raw, words(tmp_path))
    assert (omitted, [each.number for each in shown], [each.omitted for each in shown]) == (
        2,
        [3, 4, 5, 6],
        [0, 0, 0, 1],
    )
    assert [write.status for write in shown[-1].writes] == ["lost", "kept"]


def test_lost_writes_are_told_whatever_epochs_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "LOST_MAX", 2)
    monkeypatch.setattr(epochs, "EPOCHS_MAX", 1)
    raw = [RawEpoch([part(number, "lost")]) for number in range(3)]
    lost, more = shown_lost(raw, words(tmp_path, {part(1, "lost"): "inode table"}))
    assert ([(each.sector, each.name) for each in lost], more) == ([(0, ""), (1, "inode table")], 1)
    assert [each.sector for each in shown_parts(raw)] == [2, 0, 1]
    assert shown_lost([epoch("kept", "stable")], words(tmp_path)) == ((), 0)


def test_a_part_that_is_in_an_epoch_and_lost_is_shown_once() -> None:
    raw = [epoch("kept", "lost")]
    assert shown_parts(raw) == raw[0].parts


def test_the_event_of_a_crash_is_that_of_its_instant(tmp_path: Path) -> None:
    ends: list[Event] = [("returned", 0, 0), ("started", 1), ("returned", 1, 0)]
    made = Made(tmp_path, (*START, write(1, 800), ("complete", 1), *ends))
    assert [crash_event(made.last, *counts) for counts in ((1, 0), (1, 1), (2, 1), (2, 2))] == [4, 5, 6, 7]
    for event, started, returned in made.last.instants:
        assert crash_event(made.last, started, returned) == event


def test_an_instant_that_is_not_there_is_named(tmp_path: Path) -> None:
    made = Made(tmp_path, (*START, write(1, 800), ("complete", 1)))
    with pytest.raises(
        LookupError, match=r"^crash interval 1: .* at which 2 operations had started and 1 had returned"
    ):
        crash_event(made.last, 2, 1)


WORKLOAD = parse_workload("creat a\nappend a 4096\n---\nwrite a 0 4096\nfsync a\nappend a 100\nappend a 200\n", "w")


def of(workload: Workload, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{workload.operations[number - 1]} (operation {number})" for number in numbers)


@pytest.mark.parametrize(("started", "numbers"), [(2, ()), (3, ()), (5, (5,)), (6, (5, 6)), (99, (5, 6))])
def test_what_had_started_and_sent_nothing_is_named(tmp_path: Path, started: int, numbers: tuple[int, ...]) -> None:
    """Neither the set-up nor operations that write nothing."""
    third = pattern(WORKLOAD.operations[2].tag or 0, 0, 4096)
    made = Made(tmp_path, (*START, ("write", 1, 800, third, False, False)))
    assert unsent(made.recording, made.last.before_event, WORKLOAD, started) == of(WORKLOAD, *numbers)


def test_what_was_sent_after_the_crash_had_not_been_sent(tmp_path: Path) -> None:
    tags = [operation.tag or 0 for operation in WORKLOAD.operations]
    early: list[Event] = [("write", 9, 800, pattern(tags[2], 0, 4096), False, False), *START]
    late: list[Event] = [("write", 3, 808, pattern(tags[4], 4096, 100).ljust(512, b"\0"), False, False)]
    made = Made(tmp_path, (*early, *FLUSHED, ("returned", 0, 0), ("started", 1), *late))
    assert unsent(made.recording, made.intervals[0].before_event, WORKLOAD, 6) == of(WORKLOAD, 3, 5, 6)
    assert unsent(made.recording, made.last.before_event, WORKLOAD, 6) == of(WORKLOAD, 3, 6)
