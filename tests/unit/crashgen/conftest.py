"""Small random logs, and what their pieces are on each device model."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st

from postcrash._core import Recording, intervals, state_bytes, write_recording
from postcrash.model.units import SECTOR_BYTES

Event = tuple[Any, ...]

DISK_SECTORS = 12
PIECES_MAX = 6
LETTERS = "ABC.0"


@dataclass(frozen=True)
class Model:
    """A device model as its description defines it. `order` is "free", "submission" or "completion".

    `flush` is what a flush does: "persists", "orders" or "nothing". `through`: a request is stable when it completes.
    """

    name: str
    unit_sectors: int
    order: str = "free"
    flush: str = "persists"
    through: bool = False


MODELS = [
    Model("cache", 8),
    Model("torn", 1),
    Model("cache:2048", 4),
    Model("ordered", 8, "submission"),
    Model("ordered:1024", 2, "submission"),
    Model("lying", 8, flush="nothing"),
    Model("lying:512", 1, flush="nothing"),
    Model("prefix", DISK_SECTORS, "completion"),
    Model("through", 8, through=True),
    Model("plp", 1, through=True),
    Model("barrier", 8, flush="orders"),
    Model("barrier:2048", 4, flush="orders"),
]


@dataclass(frozen=True)
class Piece:
    """Letters that the sectors of a part of a request show."""

    request: int
    shows: dict[int, str]


@dataclass(frozen=True)
class Log:
    """Events as `write_recording` takes them, with letters in place of a write's data."""

    model: Model
    events: list[Event]

    def __repr__(self) -> str:
        return f"{self.model.name}: " + "; ".join(" ".join(map(str, event)) for event in self.events)

    @cached_property
    def submitted(self) -> dict[int, int]:
        """The event that submits each request."""
        kinds = ("write", "zero", "flush")
        return {event[1]: at for at, event in enumerate(self.events) if event[0] in kinds}

    @cached_property
    def completed(self) -> dict[int, int]:
        """The event that completes each request, for those that are completed."""
        return {event[1]: at for at, event in enumerate(self.events) if event[0] == "complete"}

    @cached_property
    def set_up_end(self) -> int:
        return self.events.index(("durable",)) if ("durable",) in self.events else len(self.events)

    def request(self, ident: int) -> Event:
        return self.events[self.submitted[ident]]

    def is_fua(self, ident: int) -> bool:
        return self.request(ident)[0] == "write" and bool(self.request(ident)[4])

    def is_preflush(self, ident: int) -> bool:
        return self.request(ident)[0] == "write" and bool(self.request(ident)[5])

    def is_flush(self, ident: int) -> bool:
        """Whether the request has a flush."""
        return self.request(ident)[0] == "flush" or self.is_preflush(ident)

    @cached_property
    def pieces(self) -> list[Piece]:
        """All pieces in submission order."""
        found = []
        for event in self.events:
            if event[0] in ("write", "zero"):
                letters = event[3] if event[0] == "write" else "0" * event[3]
                shows = dict(enumerate(letters, start=event[2]))
                units = sorted({sector // self.model.unit_sectors for sector in shows})
                parts = [{s: x for s, x in shows.items() if s // self.model.unit_sectors == unit} for unit in units]
                found += [Piece(event[1], part) for part in parts]
        return found


Ask = tuple[int, int, int, str, int]
"""What the generator asks for next: kind, first sector, number of sectors, letter, number."""


def log_of(asks: list[Ask], model: Model, set_up: int) -> Log:
    """A log of those `asks` that are possible, with at most PIECES_MAX pieces. The first `set_up` are the set-up."""
    events: list[Event] = []
    under_way: list[int] = []
    for index, (kind, sector, length, letter, number) in enumerate(asks):
        if index == set_up:
            events.append(("durable",))
        ident = len(events)
        length = min(length, DISK_SECTORS - sector)
        if kind == 0:
            event: Event = ("flush", ident)
        elif kind == 1:
            event = ("zero", ident, sector, length, number % 2 == 0)
        elif kind < 5:
            letters = "".join(LETTERS[(LETTERS.index(letter) + i * (number % 2)) % 5] for i in range(length))
            event = ("write", ident, sector, letters, number in (2, 4, 6), number in (3, 4, 5))
        elif under_way:
            events.append(("complete", under_way.pop(number % len(under_way))))
            continue
        else:
            continue
        if len(Log(model, [*events, event]).pieces) <= PIECES_MAX:
            events.append(event)
            under_way.append(ident)
    return Log(model, events if set_up < len(asks) else [*events, ("durable",)])


def random_logs(model: Model) -> st.SearchStrategy[Log]:
    sector = st.integers(0, DISK_SECTORS - 1)
    length = st.integers(1, min(2 * model.unit_sectors, DISK_SECTORS))
    ask = st.tuples(st.integers(0, 8), sector, length, st.sampled_from(LETTERS), st.integers(0, 11))
    set_up = st.sampled_from([0, 0, 0, 4, 8])
    return st.builds(log_of, st.lists(ask, min_size=8, max_size=24), st.just(model), set_up)


class Recorder:
    """Writes logs as recordings into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "log.pcr"
        self._base = folder / "base"
        self._base.write_bytes(b"." * SECTOR_BYTES * DISK_SECTORS)

    def record(self, log: Log) -> Recording:
        events = [
            (*event[:3], sectors_of(event[3]), *event[4:]) if event[0] == "write" else event for event in log.events
        ]
        write_recording(self._path, DISK_SECTORS, "{}", events)
        return Recording(self._path)

    def contents(self, log: Log) -> dict[int, set[str]]:
        """What the core finds: the disk contents at each instant that is judged, by the event before which it is."""
        recording = self.record(log)
        found: dict[int, set[str]] = {}
        for interval in intervals(recording, self._base, log.model.name):
            versions = [range(len(weights)) for _, _, weights in interval.components]
            for combination in product(*versions):
                choices = list(enumerate(combination))
                data = state_bytes(recording, self._base, log.model.name, interval.index, choices, 0, DISK_SECTORS)
                for event, _, _ in interval.instants:
                    found.setdefault(event, set()).add(letters_of(data))
        return found


def sectors_of(letters: str) -> bytes:
    return b"".join(b"\0" * SECTOR_BYTES if x == "0" else x.encode() * SECTOR_BYTES for x in letters)


def letters_of(data: bytes) -> str:
    return data[::SECTOR_BYTES].replace(b"\0", b"0").decode()


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """In memory if possible, because each recording is synchronised when it is finished."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Recorder(Path(folder))
