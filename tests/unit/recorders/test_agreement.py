"""Comparing two recorders' traces: what the rules explain and what not, and the recording with FUA made of both."""

from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, export_dm_log_writes, write_recording
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.agreement import Agreement, compare
from postcrash.recorders.fua import events_with_fua
from postcrash.recorders.trace import Trace

Event = tuple[Any, ...]
DISK_SECTORS = 64


def block(letter: str, blocks: int = 1) -> bytes:
    return letter.encode() * 4096 * blocks


def recording(folder: Path, name: str, events: list[Event]) -> Recording:
    write_recording(folder / name, DISK_SECTORS, "{}", events)
    return Recording(folder / name)


def log_of(folder: Path, events: list[Event]) -> Trace:
    """What dm-log-writes makes of these events, marks included."""
    source, log = recording(folder, "above.pcr", events), folder / "log"
    marks = [(number, f"{event[0]}:{event[1]}") for number, event in enumerate(events) if event[0] in MARKS]
    export_dm_log_writes(source, log, marks)
    return dm_log_writes.trace(log, DISK_SECTORS)


MARKS = ("started", "returned")
ABOVE: list[Event] = [
    ("durable",),
    ("started", 0),
    ("write", 0, 0, block("a", 2), False, False),
    ("complete", 0),
    ("write", 1, 16, block("b"), False, False),
    ("write", 2, 24, block("c"), False, False),
    ("complete", 1),
    ("complete", 2),
    ("flush", 3),
    ("complete", 3),
    ("write", 4, 32, block("d"), True, False),
    ("complete", 4),
    ("returned", 0, 0),
    ("started", 1),
    ("write", 5, 0, block("e"), False, False),
    ("complete", 5),
    ("zero", 6, 40, 8, True),
    ("complete", 6),
    ("returned", 1, 0),
]
BELOW: list[Event] = [
    ("durable",),
    ("started", 0),
    ("write", 0, 0, block("a"), False, False),
    ("complete", 0),
    ("write", 1, 8, block("a"), False, False),
    ("complete", 1),
    ("write", 2, 16, block("b") + block("c"), False, False),
    ("complete", 2),
    ("flush", 3),
    ("complete", 3),
    ("write", 4, 32, block("d"), False, False),
    ("complete", 4),
    ("flush", 5),
    ("complete", 5),
    ("returned", 0, 0),
    ("started", 1),
    ("write", 6, 0, block("e"), False, False),
    ("complete", 6),
    ("zero", 7, 40, 8, True),
    ("complete", 7),
    ("returned", 1, 0),
]


def compared(folder: Path, below: list[Event], above: list[Event]) -> Agreement:
    return compare(crash_disk.trace(recording(folder, "below.pcr", below)), log_of(folder, above))


def test_a_cut_write_joined_writes_and_fua_are_explained(tmp_path: Path) -> None:
    agreement = compared(tmp_path, BELOW, ABOVE)
    assert agreement.disagreements == []
    assert agreement.explained == {"split": 1, "joined": 1, "FUA is a flush": 1}


def test_both_make_the_recording_with_fua(tmp_path: Path) -> None:
    below = recording(tmp_path, "below.pcr", BELOW)
    made = list(events_with_fua(below, compare(crash_disk.trace(below), log_of(tmp_path, ABOVE))))
    assert made == [
        ("durable",),
        ("started", 0),
        ("write", 0, 0, block("a", 2), False, False),
        ("complete", 0),
        ("write", 1, 16, block("b"), False, False),
        ("write", 2, 24, block("c"), False, False),
        ("complete", 1),
        ("complete", 2),
        ("flush", 3),
        ("complete", 3),
        ("write", 4, 32, block("d"), True, False),
        ("complete", 4),
        ("returned", 0, 0),
        ("started", 1),
        ("write", 5, 0, block("e"), False, False),
        ("complete", 5),
        ("zero", 6, 40, 8, True),
        ("complete", 6),
        ("returned", 1, 0),
    ]
    recording(tmp_path, "made.pcr", made)


def without(events: list[Event], *ids: int) -> list[Event]:
    """The events without some requests, those behind numbered anew."""
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
        (without(BELOW, 3), ABOVE, "that of another request"),
        (without(BELOW, 5), ABOVE, "has no flush for it"),
        (without(BELOW, 7), ABOVE, "discard of 8 sectors from 40"),
        (BELOW, without(ABOVE, 0), "write of 8 sectors from 0 at 2 is not in dm-log-writes"),
        (BELOW, without(ABOVE, 3), "belongs to nothing in dm-log-writes"),
        (BELOW, without(ABOVE, 6), "discard of 8 sectors from 40 at 18 is not in dm-log-writes"),
        (BELOW, changed(ABOVE, 10, ("write", 4, 32, block("d"), False, False)), "belongs to nothing in dm-log-writes"),
        (BELOW, changed(ABOVE, 4, ("write", 1, 16, block("b"), True, False)), "that of another request"),
        (BELOW, changed(ABOVE, 4, ("write", 1, 16, block("x"), False, False)), "other data in crash-disk"),
        (BELOW, ABOVE[:-1], "marks:"),
        (without(BELOW, 4, 5), ABOVE, "write of 8 sectors from 32 FUA"),
    ],
)
def test_what_no_rule_explains_is_a_disagreement(tmp_path: Path, below, above, reason) -> None:
    found = compared(tmp_path, below, above).disagreements
    assert any(reason in text for text in found), found


def test_the_order_of_two_writes_to_one_sector_counts(tmp_path: Path) -> None:
    first, second = ("write", 0, 0, block("a"), False, False), ("write", 1, 0, block("b"), False, False)
    swapped = [("write", 0, 0, block("b"), False, False), ("write", 1, 0, block("a"), False, False)]
    below = [("durable",), first, ("complete", 0), second, ("complete", 1)]
    above = [("durable",), swapped[0], ("complete", 0), swapped[1], ("complete", 1)]
    (found,) = compared(tmp_path, below, above).disagreements
    assert "an earlier write to its sectors comes later" in found


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
