"""Comparing two recorders' traces: what the rules explain, what they do not, and the recording with FUA from both."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash._core import Recording, export_dm_log_writes
from postcrash.recorders import blklogwrites, crash_disk, dm_log_writes
from postcrash.recorders.agreement import Agreement, compare
from postcrash.recorders.fua import events_with_fua
from postcrash.recorders.trace import Trace, behind_set_up

from ...whole_run import whole_run
from .conftest import ABOVE, BELOW, DISK_SECTORS, MARKS, Event, block, log_of, recording

Steps = list[list[Event]]


def compared(folder: Path, below: list[Event], above: list[Event], *, is_threaded: bool = False) -> Agreement:
    ours = crash_disk.trace(recording(folder, "below.pcr", below))
    return compare(ours, log_of(folder, above), is_threaded=is_threaded)


@pytest.mark.parametrize("data", ["a", "b"])
def test_a_fua_write_is_not_taken_for_an_earlier_write_with_its_data(tmp_path: Path, data: str) -> None:
    """dm-log-writes logs a FUA write at once, and the plain write before it when a flush covers it.

    If the FUA write were taken for the plain one, it would be stable before X was sent, and the crash state with X and
    without it would be missing.
    """
    below: list[Event] = [
        *[("durable",), ("started", 0)],
        *[("write", 0, 0, block("a"), False, False), ("complete", 0)],
        *[("write", 1, 8, block("v"), False, False), ("complete", 1), ("flush", 2), ("complete", 2)],
        *[("write", 3, 16, block("x"), False, False), ("complete", 3)],
        *[("write", 4, 0, block(data), False, False), ("complete", 4), ("flush", 5), ("complete", 5)],
        ("returned", 0, 0),
    ]
    above: list[Event] = [
        *[("durable",), ("started", 0)],
        *[("write", 0, 8, block("v"), True, False), ("complete", 0)],
        *[("write", 1, 0, block(data), True, False), ("complete", 1)],
        ("returned", 0, 0),
        *[("write", 2, 0, block("a"), False, False), ("complete", 2)],
        *[("write", 3, 16, block("x"), False, False), ("complete", 3), ("flush", 4), ("complete", 4)],
    ]
    seen = recording(tmp_path, "below.pcr", below)
    agreement = compare(crash_disk.trace(seen), log_of(tmp_path, above))
    assert (agreement.disagreements, agreement.explained["logged late"]) == ([], 1)
    merged = [event for event in events_with_fua(seen, agreement, 0) if event[0] == "write"]
    assert [(event[2], event[4]) for event in merged] == [(0, False), (8, True), (16, False), (0, True)]


def test_a_fua_write_is_the_first_with_its_data_where_a_later_one_does_not_agree(tmp_path: Path) -> None:
    """The plain write that is still to come may really come later, as that of a journal's superblock at unmount."""
    below: list[Event] = [
        *[("durable",), ("started", 0)],
        *[("write", 0, 0, block("a"), False, False), ("complete", 0), ("flush", 1), ("complete", 1)],
        *[("write", 2, 8, block("v"), False, False), ("complete", 2), ("flush", 3), ("complete", 3)],
        *[("write", 4, 0, block("a"), False, False), ("complete", 4)],
        ("returned", 0, 0),
    ]
    above: list[Event] = [
        *[("durable",), ("started", 0)],
        *[("write", 0, 0, block("a"), True, False), ("complete", 0)],
        *[("write", 1, 8, block("v"), True, False), ("complete", 1)],
        *[("write", 2, 0, block("a"), False, False), ("complete", 2)],
        ("returned", 0, 0),
    ]
    seen = recording(tmp_path, "below.pcr", below)
    agreement = compare(crash_disk.trace(seen), log_of(tmp_path, above))
    assert (agreement.disagreements, agreement.explained["logged late"]) == ([], 0)
    merged = [event for event in events_with_fua(seen, agreement, 0) if event[0] == "write"]
    assert [(event[2], event[4]) for event in merged] == [(0, True), (8, True), (0, False)]


def test_a_cut_write_joined_writes_and_fua_are_explained(tmp_path: Path) -> None:
    agreement = compared(tmp_path, BELOW, ABOVE)
    assert agreement.disagreements == []
    assert agreement.explained == {"split": 1, "joined": 1, "FUA is a flush": 1}


def without(events: list[Event], *ids: int) -> list[Event]:
    """The events without some requests. The requests behind these get new numbers."""
    left = [event for event in events if event[0] in (*MARKS, "durable") or event[1] not in ids]
    numbers: dict[int, int] = {}
    renumbered = []
    for event in left:
        if event[0] not in (*MARKS, "durable"):
            event = (event[0], numbers.setdefault(event[1], len(numbers)), *event[2:])
        renumbered.append(event)
    return renumbered


def changed(events: list[Event], place: int, event: Event) -> list[Event]:
    return [*events[:place], event, *events[place + 1 :]]


@pytest.mark.parametrize(
    ("below", "above", "reason"),
    [
        (without(BELOW, 1), ABOVE, "crash-disk saw only a part of it"),
        (without(BELOW, 2), ABOVE, "is not in crash-disk"),
        (without(BELOW, 3), ABOVE, "belongs to another request"),
        (without(BELOW, 5), ABOVE, "has no flush for it"),
        (without(BELOW, 7), ABOVE, "discard of 8 sectors from 40"),
        (BELOW, without(ABOVE, 0), "write of 8 sectors from 0 at 2 is not in dm-log-writes"),
        (BELOW, without(ABOVE, 3), "belongs to nothing in dm-log-writes"),
        (BELOW, without(ABOVE, 6), "discard of 8 sectors from 40 at 18 is not in dm-log-writes"),
        (BELOW, changed(ABOVE, 10, ("write", 4, 32, block("d"), False, False)), "belongs to nothing in dm-log-writes"),
        (BELOW, changed(ABOVE, 4, ("write", 1, 16, block("b"), True, False)), "belongs to another request"),
        (BELOW, changed(ABOVE, 4, ("write", 1, 16, block("x"), False, False)), "other data in crash-disk"),
        (BELOW, ABOVE[:-1], "marks:"),
        (without(BELOW, 4, 5), ABOVE, "write of 8 sectors from 32 FUA"),
    ],
)
def test_what_no_rule_explains_is_a_disagreement(
    tmp_path: Path, below: list[Event], above: list[Event], reason: str
) -> None:
    found = compared(tmp_path, below, above).disagreements
    assert any(reason in text for text in found), found


def test_the_order_of_two_writes_to_one_sector_counts(tmp_path: Path) -> None:
    first, second = ("write", 0, 0, block("a"), False, False), ("write", 1, 0, block("b"), False, False)
    swapped = [("write", 0, 0, block("b"), False, False), ("write", 1, 0, block("a"), False, False)]
    below = [("durable",), first, ("complete", 0), second, ("complete", 1)]
    above = [("durable",), swapped[0], ("complete", 0), swapped[1], ("complete", 1)]
    (found,) = compared(tmp_path, below, above).disagreements
    assert "an earlier write to its sectors comes later" in found


def overwriting(letters: str) -> list[Event]:
    """One block, written with each letter in turn: full of the letter, or of several if it is upper-case."""
    texts = {"X": b"aabb" * 1024, "Y": b"axbb" * 1024}
    written = (texts.get(letter, block(letter)) for letter in letters)
    return numbered([[("write", 0, 0, data, False, False), ("complete", 0)] for data in written])


def test_three_writes_to_one_sector_in_another_order(tmp_path: Path) -> None:
    found = compared(tmp_path, overwriting("abc"), overwriting("bca")).disagreements
    assert any("an earlier write to its sectors comes later" in text for text in found), found


@pytest.mark.parametrize(
    ("below", "above", "disagreements"),
    [
        *[("abb", "axb", 0), ("bb", "xb", 0), ("abc", "axb", 1), ("ab", "ax", 1), ("abxb", "axb", 2)],
        *[("Xb", "ab", 0), ("Yb", "ab", 1), ("X", "a", 1)],
    ],
)
def test_a_buffer_that_changed_on_the_way_is_written_once_more(
    tmp_path: Path, below: str, above: str, disagreements: int
) -> None:
    """The recording with FUA has what the disk saw."""
    ours = crash_disk.trace(recording(tmp_path, "below.pcr", overwriting(below)))
    theirs = log_of(tmp_path, overwriting(above))
    assert compare(ours, theirs).disagreements
    agreement = compare(ours, theirs, is_stable=False)
    assert len(agreement.disagreements) == disagreements
    if not disagreements:
        assert agreement.explained == {"changed on the way": 1}
        assert [found.request.data for found in agreement.placed] == [request.data for request in ours.requests]


def test_a_fua_write_may_be_logged_before_an_earlier_one(tmp_path: Path) -> None:
    below = [
        ("durable",),
        *[("write", 0, 0, block("a"), False, False), ("complete", 0)],
        *[("write", 1, 0, block("b"), False, False), ("complete", 1), ("flush", 2), ("complete", 2)],
    ]
    above = [
        ("durable",),
        *[("write", 0, 0, block("b"), True, False), ("complete", 0)],
        *[("write", 1, 0, block("a"), False, False), ("complete", 1)],
    ]
    agreement = compared(tmp_path, below, above)
    assert agreement.disagreements == []
    assert agreement.explained["logged late"] == 1


def write(id: int, sector: int, fua: bool = False) -> list[Event]:
    return [("write", id, sector, block("abcdefgh"[id % 8]), fua, False), ("complete", id)]


def flush(id: int) -> list[Event]:
    return [("flush", id), ("complete", id)]


def with_qemu(folder: Path, below: Steps, above: Steps) -> Agreement:
    """The agreement of QEMU's log, which has no marks, with that of dm-log-writes."""
    export_dm_log_writes(recording(folder, "below.pcr", numbered(below)), folder / "qemu", [])
    return compare(blklogwrites.trace(folder / "qemu", DISK_SECTORS), log_of(folder, numbered(above)))


def numbered(steps: Steps) -> list[Event]:
    """One list of events, with the ids of requests from 0 in their order."""
    return [("durable",), *((event[0], id, *event[2:]) for id, events in enumerate(steps) for event in events)]


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
    start = blklogwrites.Position.end_of(log)
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


SET_UP_ABOVE: list[Event] = [
    ("started", 0),
    ("write", 90, 4, block("s", 2), True, False),
    ("complete", 90),
    ("returned", 0, 0),
    ("flush", 91),
    ("complete", 91),
]
SET_UP_BELOW: list[Event] = [
    ("started", 0),
    ("write", 90, 4, block("s"), False, False),
    ("write", 91, 12, block("s"), False, False),
    ("complete", 90),
    ("complete", 91),
    ("flush", 92),
    ("complete", 92),
    ("returned", 0, 0),
    ("flush", 93),
    ("complete", 93),
]


def later(events: list[Event]) -> list[Event]:
    """The same operations, numbered from 1, behind the set-up."""
    return [(event[0], event[1] + 1, *event[2:]) if event[0] in MARKS else event for event in events[1:]]


def with_set_up(folder: Path) -> tuple[Recording, Trace]:
    """Both recorders' view of a run. The log also has the mark of the end of the set-up."""
    below = recording(folder, "below.pcr", [*SET_UP_BELOW, ("durable",), *later(BELOW)])
    events = [*SET_UP_ABOVE, ("durable",), *later(ABOVE)]
    source, log = recording(folder, "above.pcr", events), folder / "log"
    texts = {number: ":".join(map(str, event[:2])) for number, event in enumerate(events) if event[0] in MARKS}
    texts[len(SET_UP_ABOVE)] = "durable"
    export_dm_log_writes(source, log, sorted(texts.items()))
    return below, dm_log_writes.trace(log, DISK_SECTORS)


def test_of_the_set_up_only_the_contents_count(tmp_path: Path) -> None:
    below, above = with_set_up(tmp_path)
    disk = crash_disk.trace(below)
    rest = behind_set_up(disk, above)
    assert rest is not None
    assert behind_set_up(disk, replace(above, requests=rest[1].requests, marks=rest[1].marks)) == rest
    agreement = compare(*rest)
    assert agreement.disagreements == []
    assert disk.durable is not None
    events = list(events_with_fua(below, agreement, disk.durable))
    end = events.index(("durable",))
    assert events[:end] == [
        ("started", 0),
        ("returned", 0, 0),
        ("write", 0, 4, 2 * block("s"), False, False),
        ("complete", 0),
    ]
    plain = recording(tmp_path, "plain.pcr", BELOW)
    alone = list(events_with_fua(plain, compare(crash_disk.trace(plain), log_of(tmp_path, ABOVE))))
    shapes = [[event[:1] + event[2:] for event in made] for made in (later(alone), events[end + 1 :])]
    assert shapes[0] == shapes[1]


def test_a_set_up_that_is_not_over_is_compared_too(tmp_path: Path) -> None:
    below, above = with_set_up(tmp_path)
    disk = crash_disk.trace(below)
    under_way = tuple(replace(each, completed=None) for each in disk.requests[:1]) + disk.requests[1:]
    assert behind_set_up(replace(disk, requests=under_way), above) is None
    assert behind_set_up(replace(disk, durable=None), above) is None
    assert behind_set_up(disk, replace(above, durable=None)) is None
    assert behind_set_up(disk, replace(above, marks=above.marks[1:])) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "0 bytes cannot hold"), (b"x" * 27, "27 bytes cannot"), (b"\0" * 64, "it has 0 entries")],
)
def test_a_log_of_qemu_that_loses_what_it_had_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    with pytest.raises(ValueError, match=f"log: {said}"):
        blklogwrites.Position(3, 512).cut(log, tmp_path / "out")
