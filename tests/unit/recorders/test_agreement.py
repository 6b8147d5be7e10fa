"""Comparing two recorders' traces: what the rules explain, what they do not, and the recording with FUA from both."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash._core import Recording, export_dm_log_writes
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.agreement import compare
from postcrash.recorders.fua import events_with_fua
from postcrash.recorders.trace import Trace, behind_set_up

from ...qemu_log import LogPosition
from .conftest import ABOVE, BELOW, DISK_SECTORS, MARKS, Event, block, compared, log_of, numbered, recording


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


def test_a_write_that_comes_between_the_parts_of_another_one(tmp_path: Path) -> None:
    """The request counts from its first part on. Its second part would be overwritten by what came before that."""
    first: list[Event] = [("write", 0, 0, block("a"), False, False), ("complete", 0)]
    second: list[Event] = [("write", 0, 8, block("a"), False, False), ("complete", 0)]
    other: list[Event] = [("write", 0, 8, block("b"), False, False), ("complete", 0)]
    flush: list[Event] = [("flush", 0), ("complete", 0)]
    whole: list[Event] = [("write", 0, 0, block("a", 2), True, False), ("complete", 0)]
    above = numbered([whole, other, flush])
    assert compared(tmp_path, numbered([other, first, second, flush, flush]), above).disagreements == []
    (found,) = compared(tmp_path, numbered([first, other, second, flush, flush]), above).disagreements
    assert "another write came between its parts" in found


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
        LogPosition(3, 512).cut(log, tmp_path / "out")
