"""postcrash._core: what the Rust core finds, seen from Python, and how it refuses input."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import (
    DeviceModel,
    Interval,
    Recording,
    count_states,
    device_models,
    intervals,
    state_bytes,
    write_recording,
)
from postcrash.model.units import BLOCK_SECTORS, SECTOR_BYTES

Event = tuple[Any, ...]
DISK_SECTORS = 16


def write(ident: int, sector: int, letters: str, *, fua: bool = False, preflush: bool = False) -> Event:
    """A write with one letter for each sector."""
    return ("write", ident, sector, b"".join(letter.encode() * SECTOR_BYTES for letter in letters), fua, preflush)


def done(ident: int) -> Event:
    return ("complete", ident)


DURABLE: Event = ("durable",)

LOGS: dict[str, list[Event]] = {
    "nothing": [DURABLE],
    "a write of two blocks": [DURABLE, write(0, 4, "ABCDEFGH"), done(0)],
    "a flush in the middle": [
        DURABLE, write(0, 0, "A"), done(0), ("flush", 1), write(2, 0, "BB"), done(1), write(3, 9, "C"), done(2),
    ],
    "set-up, discard and the same content twice": [
        write(0, 0, "AAAA"), done(0), DURABLE, ("zero", 1, 1, 12, True), write(2, 2, "AZ"), done(2), done(1),
    ],
    "FUA before an older write": [
        DURABLE, write(0, 2, "AAAA"), write(1, 3, "B", fua=True), done(1), ("zero", 2, 8, 1, False), done(0),
    ],
}  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base"
    path.write_bytes(b"." * SECTOR_BYTES * DISK_SECTORS)
    return path


def recorded(tmp_path: Path, events: list[Event], disk_sectors: int = DISK_SECTORS) -> Recording:
    path = tmp_path / "log.pcr"
    write_recording(path, disk_sectors, '{"name": "test"}', events)
    return Recording(path)


def choices_of(interval: Interval) -> Iterator[list[tuple[int, int]]]:
    """Every combination of the components' versions."""
    versions = [range(len(weights)) for _, _, weights in interval.components]
    for combination in product(*versions):
        yield list(enumerate(combination))


def content(recording: Recording, base: Path, model: str, interval: Interval, choices: list[tuple[int, int]]) -> str:
    """One letter a sector; 0 for zeros."""
    data = state_bytes(recording, base, model, interval.index, choices, 0, DISK_SECTORS)
    sectors = [data[at : at + SECTOR_BYTES] for at in range(0, len(data), SECTOR_BYTES)]
    assert all(len(set(sector)) == 1 for sector in sectors)
    return "".join(chr(sector[0] or ord("0")) for sector in sectors)


def letters_of(event: Event) -> str:
    """What each sector of a write or zero shows."""
    if event[0] == "zero":
        return "0" * int(event[3])
    data: bytes = event[3]
    return data[::SECTOR_BYTES].decode()


def is_stable(events: list[Event], at: int, model: str) -> bool:
    """Whether the write that event `at` submits is stable when just `events` have happened."""
    ident = events[at][1]
    if done(ident) not in events:
        return False
    completed = events.index(done(ident))
    if DURABLE in events[completed:]:
        return True
    flushes = [
        f for f, event in enumerate(events) if event[0] == "flush" and f > completed and done(event[1]) in events
    ]
    fua = events[at][0] == "write" and events[at][4]
    return model != "lying" and (fua or bool(flushes))


def brute_force(events: list[Event], model: str) -> Counter[str]:
    """Each disk content after a crash when just `events` have happened, with the number of assignments that give it."""
    pieces: list[tuple[bool, dict[int, str]]] = []
    for at, event in enumerate(events):
        if event[0] in ("write", "zero"):
            shown = dict(enumerate(letters_of(event), start=event[2]))
            blocks = sorted({sector // BLOCK_SECTORS for sector in shown})
            parts = [{s: letter for s, letter in shown.items() if s // BLOCK_SECTORS == block} for block in blocks]
            pieces += [(is_stable(events, at, model), part) for part in parts]
    found: Counter[str] = Counter()
    for kept in product(*[[True] if stable else [True, False] for stable, _ in pieces]):
        disk = dict.fromkeys(range(DISK_SECTORS), ".")
        for (_, part), keep in zip(pieces, kept, strict=True):
            disk.update(part if keep else {})
        found["".join(disk.values())] += 1
    return found


def test_a_recording_comes_back_as_it_was_written(tmp_path: Path) -> None:
    events: list[Event] = [
        write(0, 3, "AB"), done(0), DURABLE, ("started", 0),
        write(7, 0, "C", fua=True), write(8, 1, "D", preflush=True),
        ("zero", 2, 8, 4, True), ("zero", 3, 8, 4, False), ("flush", 4), done(4), ("returned", 0, 28),
    ]  # fmt: skip
    recording = recorded(tmp_path, events)
    expected = [
        (*event[:3], len(event[3]) // SECTOR_BYTES, *event[4:]) if event[0] == "write" else event for event in events
    ]
    assert recording.events() == expected
    assert recording.data(0) == b"A" * SECTOR_BYTES + b"B" * SECTOR_BYTES
    assert (recording.disk_sectors, recording.metadata) == (DISK_SECTORS, '{"name": "test"}')
    assert len(recording.digest) == 64
    assert [path.name for path in tmp_path.iterdir()] == ["log.pcr"]


@pytest.mark.parametrize("model", ["cache", "lying"])
@pytest.mark.parametrize("name", LOGS)
def test_the_crash_states_are_those_of_every_assignment(tmp_path: Path, base: Path, name: str, model: str) -> None:
    events = LOGS[name]
    recording = recorded(tmp_path, events)
    for interval in intervals(recording, base, model):
        expected = brute_force(events[: interval.before_event], model)
        found = {content(recording, base, model, interval, c): interval.covered(c) for c in choices_of(interval)}
        assert found == expected
        assert interval.contents == len(expected)
        assert interval.states == expected.total() == 2 ** len(interval.pieces) == interval.covered([])


def test_an_interval_says_what_it_is(tmp_path: Path, base: Path) -> None:
    events: list[Event] = [
        write(0, 0, "Z"), done(0), DURABLE, ("started", 0), write(1, 7, "AB"), done(1), ("returned", 0, 0),
        ("started", 1), ("flush", 2), done(2), write(3, 7, "C"), write(4, 7, "D"), done(4),
    ]  # fmt: skip
    found = intervals(recorded(tmp_path, events), base, "cache")
    assert [(interval.index, interval.instants) for interval in found] == [
        (0, [(3, 0, 0)]), (1, [(6, 1, 0), (7, 1, 1)]), (2, [(9, 2, 1)]), (3, [(13, 2, 1)]),
    ]  # fmt: skip
    _, _, first, second = found
    assert (first.before_event, first.started, first.returned) == (9, 2, 1)
    assert first.pieces == [(4, 7, 1), (4, 8, 1)]
    assert first.components == [(7, 1, [1, 1]), (8, 1, [1, 1])]
    assert first.lost([]) == []
    assert first.lost([(1, 1)]) == [1]
    [(sector, sectors, weights)] = second.components
    assert (sector, sectors, sorted(weights)) == (7, 1, [1, 1, 2])
    assert sum(second.covered([(0, version)]) for version in range(3)) == second.states == 4
    assert [second.lost([(0, version)]) for version in range(3)] == [[], [1], [0, 1]]


def test_numbers_have_no_limit(tmp_path: Path, base: Path) -> None:
    events: list[Event] = [DURABLE, *(write(i, i % DISK_SECTORS, "A") for i in range(200))]
    [interval] = intervals(recorded(tmp_path, events), base, "cache")
    assert interval.states == 2**200
    assert interval.contents == 2**DISK_SECTORS
    all_lost = [(component, 1) for component in range(DISK_SECTORS)]
    assert interval.covered(all_lost) == 1
    assert interval.lost(all_lost) == list(range(200))


def test_pieces_kept_in_order_are_one_choice(tmp_path: Path, base: Path) -> None:
    events: list[Event] = [DURABLE, write(0, 9, "A"), write(1, 2, "BB"), write(2, 9, "A"), write(3, 9, "C")]
    [interval] = intervals(recorded(tmp_path, events), base, "ordered")
    assert (interval.states, interval.contents) == (5, 4)
    assert interval.components == [(2, 3, [1, 2, 1, 1])]
    assert [interval.covered([]), interval.covered([(0, 1)])] == [5, 2]
    assert [interval.lost([(0, version)]) for version in range(4)] == [[], [3], [1, 2, 3], [0, 1, 2, 3]]


def test_the_device_models() -> None:
    assert device_models() == ["cache", "torn", "ordered", "lying", "prefix", "through", "plp", "barrier"]
    assert [DeviceModel(name).untorn for name in ("torn", "plp", "barrier:512")] == ["cache", "through", "barrier"]


@pytest.mark.parametrize(
    ("name", "shortest"), [("cache:4096", "cache"), ("cache:512", "torn"), ("ordered:16384", "ordered:16384")]
)
def test_a_device_model_has_one_shortest_name(name: str, shortest: str) -> None:
    assert DeviceModel(name).name == shortest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "unknown device model ''; known: cache, "),
        ("cash:512", "unknown device model 'cash:512'; known: cache, "),
        ("cache:", "device model 'cache:': the atomic unit is a power of two of at least 512 bytes, not ''"),
        ("lying:4095", "the atomic unit is a power of two of at least 512 bytes, not '4095'"),
        ("torn:512", "device model 'torn:512': torn takes no atomic unit"),
    ],
)
def test_what_is_no_device_model_is_a_value_error(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeviceModel(name)


def test_a_file_that_cannot_be_read_is_an_os_error(tmp_path: Path, base: Path) -> None:
    with pytest.raises(OSError, match=r"absent\.pcr"):
        Recording(tmp_path / "absent.pcr")
    recording = recorded(tmp_path, [DURABLE])
    with pytest.raises(OSError, match="no-base"):
        intervals(recording, tmp_path / "no-base", "cache")
    with pytest.raises(OSError, match="no-folder"):
        write_recording(tmp_path / "no-folder/a.pcr", DISK_SECTORS, "{}", [])


def test_a_damaged_recording_is_a_value_error(tmp_path: Path) -> None:
    recorded(tmp_path, LOGS["a flush in the middle"])
    path = tmp_path / "log.pcr"
    whole = path.read_bytes()
    for damaged in (b"", b"text", whole[:-1], whole[:40] + b"x" + whole[41:], whole + b"\0"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"log\.pcr: not a recording: .* \(byte \d+\)"):
            Recording(path)


def test_an_unknown_model_is_a_value_error(tmp_path: Path, base: Path) -> None:
    recording = recorded(tmp_path, [DURABLE])
    with pytest.raises(ValueError, match="unknown device model 'cash'; known: cache, "):
        intervals(recording, base, "cash")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (("wriet", 0), r"event 1, \('wriet', 0\): unknown event 'wriet'"),
        (("flush",), r"event 1, \('flush',\): .*out of range"),
        (("flush", "x"), r"event 1, \('flush', 'x'\): .*'str'"),
        (("flush", -1), r"event 1, \('flush', -1\): "),
        (done(5), "request 5 completes but is not outstanding"),
        (write(0, DISK_SECTORS, "A"), "1 sectors from sector 16 do not fit on a disk of 16"),
        (("write", 0, 0, b"abc", False, False), "a write of 3 bytes is not whole sectors"),
        (("returned", 3, 0), "operation 3 is marked out of order"),
    ],
)
def test_what_cannot_be_recorded_is_a_value_error_and_leaves_nothing(
    tmp_path: Path, event: Event, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write_recording(tmp_path / "log.pcr", DISK_SECTORS, "{}", [DURABLE, event])
    assert list(tmp_path.iterdir()) == []


def test_a_disk_or_metadata_that_cannot_be_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a disk of 0 sectors"):
        write_recording(tmp_path / "log.pcr", 0, "{}", [])
    with pytest.raises(ValueError, match="the metadata is not JSON"):
        write_recording(tmp_path / "log.pcr", 8, "{", [])


def test_what_is_not_there_is_an_index_error(tmp_path: Path, base: Path) -> None:
    recording = recorded(tmp_path, [DURABLE, write(0, 0, "A")])
    [interval] = intervals(recording, base, "cache")
    with pytest.raises(IndexError, match="event 0 is not a write"):
        recording.data(0)
    with pytest.raises(IndexError, match="event 99 is not a write"):
        recording.data(99)
    for choices in ([(0, 2)], [(1, 0)]):
        component, version = choices[0]
        with pytest.raises(IndexError, match=f"component {component} has no version {version}"):
            interval.covered(choices)
        with pytest.raises(IndexError, match=f"component {component} has no version {version}"):
            interval.lost(choices)
        with pytest.raises(IndexError, match=f"component {component} has no version {version}"):
            state_bytes(recording, base, "cache", 0, choices, 0, 1)
    with pytest.raises(IndexError, match="no crash interval 7"):
        state_bytes(recording, base, "cache", 7, [], 0, 1)
    for sector, sectors in [(0, 17), (16, 1), (2**64 - 1, 2), (0, 2**64 - 1)]:
        with pytest.raises(IndexError, match=f"{sectors} sectors from sector {sector} are not on the disk"):
            state_bytes(recording, base, "cache", 0, [], sector, sectors)


def test_a_component_chosen_twice_is_a_value_error(tmp_path: Path, base: Path) -> None:
    recording = recorded(tmp_path, [DURABLE, write(0, 0, "A")])
    [interval] = intervals(recording, base, "cache")
    for act in (interval.covered, interval.lost):
        with pytest.raises(ValueError, match="component 0 is chosen twice"):
            act([(0, 0), (0, 1)])


def test_a_state_of_an_interval_with_too_many_contents_is_a_value_error(tmp_path: Path, base: Path) -> None:
    twice = [write(i, i // 2, "AB"[i % 2]) for i in range(16)]
    recording = recorded(tmp_path, [DURABLE, write(99, 0, "Z" * 8), *twice])
    [interval] = intervals(recording, base, "cache")
    assert interval.states == 2**17
    with pytest.raises(ValueError, match="17 overlapping writes at sector 0 leave more than 4096 contents"):
        state_bytes(recording, base, "cache", 0, [], 0, 1)


def test_a_base_image_may_be_shorter_than_the_disk(tmp_path: Path, base: Path) -> None:
    recording = recorded(tmp_path, [DURABLE])
    base.write_bytes(b"x" * SECTOR_BYTES)
    assert state_bytes(recording, base, "cache", 0, [], 0, 2) == b"x" * SECTOR_BYTES + b"\0" * SECTOR_BYTES
    base.write_bytes(b"")
    assert state_bytes(recording, base, "cache", 0, [], 15, 1) == b"\0" * SECTOR_BYTES


@pytest.mark.parametrize(("model", "sectors"), [("cache", 2**35), ("torn", 2**23)])
def test_a_recording_that_zeroes_too_much_is_a_value_error(
    tmp_path: Path, base: Path, model: str, sectors: int
) -> None:
    """A few bytes of a recording can name every sector of a large disk."""
    write_recording(tmp_path / "large.pcr", 2**35, "{}", [DURABLE, ("zero", 0, 0, sectors, True)])
    recording = Recording(tmp_path / "large.pcr")
    for read in (intervals, count_states):
        with pytest.raises(ValueError, match=r"its discards have [0-9]+ pieces, more than 4194304"):
            read(recording, base, model)
