"""Recordings of several disks: at each instant, what a crash leaves is a choice on each disk, as if it were alone."""

from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postcrash._core import DeviceModel, Interval, Recording, intervals, state_bytes, write_recording, write_state
from postcrash.model.units import SECTOR_BYTES

from .conftest import MODELS, Event, Model, Recorder, letters_of, sectors_of

SECTORS = 8
"""Of each disk."""
PIECES_MAX = 7


def random_events(disks: int, unit_sectors: int) -> st.SearchStrategy[list[Event]]:
    """Requests on any of the disks, with letters in place of a write's data, and marks of operations.

    They have at most PIECES_MAX pieces of so many sectors.
    """
    ask = st.tuples(st.integers(0, 9), st.integers(0, disks - 1), st.integers(0, SECTORS - 1), st.integers(1, 8))
    asks = st.lists(st.tuples(ask, st.integers(0, 11)), min_size=8, max_size=24)
    return st.builds(events_of, asks, st.just(unit_sectors))


def events_of(asks: list[tuple[tuple[int, int, int, int], int]], unit_sectors: int) -> list[Event]:
    events: list[Event] = [("durable",)]
    under_way: list[int] = []
    marks, pieces = 0, 0
    for (kind, disk, sector, length), number in asks:
        ident = len(events)
        if kind == 0:
            events.append(("flush", ident, disk) if disk else ("flush", ident))
        elif kind < 5:
            letters = "ABCDEFGH"[number % 8] * min(length, SECTORS - sector, 2 * unit_sectors)
            pieces += len({at // unit_sectors for at in range(sector, sector + len(letters))})
            if pieces > PIECES_MAX:
                break
            place = disk * SECTORS + sector
            zero: Event = ("zero", ident, place, len(letters), False)
            write: Event = ("write", ident, place, letters, number in (2, 4, 6), number in (3, 4, 5))
            events.append(zero if number == 0 else write)
        elif kind == 5:
            events.append(("started", marks // 2) if marks % 2 == 0 else ("returned", marks // 2, 0))
            marks += 1
            continue
        else:
            if under_way:
                events.append(("complete", under_way.pop(number % len(under_way))))
            continue
        under_way.append(ident)
    return events


def disk_of(event: Event) -> int:
    """The disk of a request."""
    if event[0] == "flush":
        return event[2] if len(event) > 2 else 0
    return int(event[2]) // SECTORS


def on_disk(events: list[Event], disk: int) -> list[Event]:
    """What one disk sees: its requests with its own sectors, and all marks."""
    seen, idents = [], set()
    for event in events:
        if event[0] in ("write", "zero", "flush") and disk_of(event) == disk:
            idents.add(event[1])
            at = [] if event[0] == "flush" else [event[2] - disk * SECTORS]
            seen.append((*event[:2], *at, *event[3:]))
        elif event[0] in ("started", "returned", "durable") or (event[0] == "complete" and event[1] in idents):
            seen.append(event)
    return seen


class Disks:
    """Recordings of so many disks, in a folder."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self.path = folder / f"{count}.pcr"
        self.base = folder / f"{count}.base"
        self.base.write_bytes(b"." * SECTOR_BYTES * SECTORS * count)

    def record(self, events: list[Event]) -> Recording:
        data = [(*e[:3], sectors_of(e[3]), *e[4:]) if e[0] == "write" else e for e in events]
        write_recording(self.path, [SECTORS] * self.count if self.count > 1 else SECTORS, "{}", data)
        return Recording(self.path)

    def found(self, events: list[Event], model: str) -> Iterator[tuple[Interval, set[str]]]:
        """Each crash interval with the contents of all disks, one after the other."""
        recording = self.record(events)
        for interval in intervals(recording, self.base, model):
            versions = [range(len(weights)) for _, _, weights in interval.components]
            shown = set()
            for combination in product(*versions):
                choices = list(enumerate(combination))
                data = state_bytes(recording, self.base, model, interval.index, choices, 0, SECTORS * self.count)
                shown.add(letters_of(data))
            yield interval, shown

    def at_the_end(self, events: list[Event], model: str) -> tuple[set[str], list[int]]:
        """What a crash after all events leaves, and the numbers of crash states of the intervals at that instant."""
        last = [(i, shown) for i, shown in self.found(events, model) if i.before_event == len(events)]
        return {content for _, shown in last for content in shown}, [interval.states for interval, _ in last]


def marks_of(events: list[Event]) -> int:
    return sum(event[0] in ("started", "returned") for event in events)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("count", [2, 3])
def test_a_crash_state_of_several_disks_is_one_of_each(
    recorder: Recorder, count: int, model: Model, pytestconfig: pytest.Config
) -> None:
    @settings(max_examples=100 if pytestconfig.option.full else 12, suppress_health_check=[HealthCheck.too_slow])
    @given(events=random_events(count, model.unit_sectors))
    def is_product(events: list[Event]) -> None:
        check_product(Disks(recorder.folder, count), Disks(recorder.folder, 1), events, model.name)

    is_product()


def check_product(together: Disks, alone: Disks, events: list[Event], model: str) -> None:
    """At each instant the contents, and their number, are those of each disk alone, in all combinations."""
    known: dict[str, tuple[set[str], list[int]]] = {}

    def of(end: int, disk: int) -> tuple[set[str], list[int]]:
        seen = on_disk(events[:end], disk)
        return known.get(str(seen)) or known.setdefault(str(seen), alone.at_the_end(seen, model))

    found: dict[int, set[str]] = {}
    states: dict[int, list[int]] = {}
    for interval, shown in together.found(events, model):
        for at, _, _ in interval.instants:
            found.setdefault(at, set()).update(shown)
            states.setdefault(at, []).append(interval.states)
    for end in range(1, len(events) + 1):
        each = [of(end, disk) for disk in range(together.count)]
        expected = {"".join(parts) for parts in product(*(contents for contents, _ in each))}
        if end in found:
            assert found[end] == expected
            counts = sorted(prod(numbers) for numbers in product(*(numbers for _, numbers in each)))
            assert sorted(states[end]) == counts
        else:  # another instant between the same marks has all of them: a later one, unless completions take some away
            others = [at for at in found if at > end or DeviceModel(model).untorn == "through"]
            others = [at for at in others if marks_of(events[min(at, end) : max(at, end)]) == 0]
            assert any(expected <= found[at] for at in others)


@pytest.mark.parametrize("flush", [("flush", 2), ("flush", 2, 1)])
def test_a_flush_covers_its_own_disk_only(recorder: Recorder, flush: Event) -> None:
    events: list[Event] = [
        ("durable",), ("write", 0, 0, "A" * 8, False, False), ("write", 1, 8, "B" * 8, False, False),
        ("complete", 0), ("complete", 1), flush, ("complete", 2),
    ]  # fmt: skip
    found, states = Disks(recorder.folder, 2).at_the_end(events, "cache")
    expected = {"A" * 8 + "B" * 8, "A" * 8 + "." * 8 if flush == ("flush", 2) else "." * 8 + "B" * 8}
    assert (found, states) == (expected, [2])


def test_an_atomic_unit_does_not_go_from_one_disk_to_the_next(recorder: Recorder) -> None:
    """Units begin where the disk begins. The second disk begins in the middle of what would be one."""
    write: list[Event] = [("durable",), ("write", 0, 8, "B" * 8, False, False)]
    contents, states = Disks(recorder.folder, 2).at_the_end(write, "cache:8192")
    assert (contents, states) == ({"." * 16, "." * 8 + "B" * 8}, [2])


def test_the_recording_has_its_disks(tmp_path: Path) -> None:
    path, base = tmp_path / "log.pcr", tmp_path / "base"
    base.write_bytes(b"." * SECTOR_BYTES * 24)
    write_recording(path, [8, 16], "{}", [("durable",), ("flush", 0, 1), ("complete", 0)])
    recording = Recording(path)
    assert (recording.disks, recording.disk_sectors) == ([8, 16], 24)
    assert recording.events()[1] == ("flush", 0, 1)
    write_state(recording, base, "cache", 0, [], tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == base.read_bytes()


@pytest.mark.parametrize(
    ("disks", "event", "why"),
    [
        ([8, 8], ("flush", 0, 2), "there is no disk 2"),
        ([8, 8], ("write", 0, 7, bytes(1024), False, False), "2 sectors from sector 7 do not fit on a disk of 8"),
        ([8, 8], ("zero", 0, 15, 2, False), "2 sectors from sector 15 do not fit on a disk from 8 to 16"),
        ([8, 9], ("flush", 0), "one of several disks has 9 sectors"),
        ([], ("flush", 0), "0 disks are not 1 to 16"),
        ([8] * 17, ("flush", 0), "17 disks are not 1 to 16"),
    ],
)
def test_what_is_on_no_disk_is_refused(tmp_path: Path, disks: list[int], event: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        write_recording(tmp_path / "log.pcr", disks, "{}", [event])


def test_what_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.pcr"
    write_recording(path, [8, 8], "{}", [("durable",)])
    path.write_bytes(path.read_bytes().replace(b"PCREC02", b"PCREC01"))
    with pytest.raises(ValueError, match="checksum"):
        Recording(path)
