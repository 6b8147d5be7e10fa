"""Recordings and crash intervals: the Python face of the crate postcrash-core.

An event is one of
("write", id, sector, sectors, fua, preflush), ("zero", id, sector, sectors, discard), ("flush", id), ("complete", id),
("started", operation), ("returned", operation, errno), ("durable",), in the order of the disk. A flush of another disk
than the first is ("flush", id, disk). The sectors of several disks are numbered one disk after the other.
A note of a system call is (events, "call-begins", thread, program, call) or (events, "call-ends", thread, result). It
stands behind so many events, is none, and changes no crash state. An error is a negative errno.
Choices are pairs (component, version); a component that is not named has version 0, which keeps all that it can.
"""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Literal

Mark = tuple[Literal["started"], int] | tuple[Literal["returned"], int, int] | tuple[Literal["durable"]]
"""("started", operation), ("returned", operation, errno), or ("durable",): the set-up is."""
Flush = tuple[Literal["flush"], int] | tuple[Literal["flush"], int, int]
Request = tuple[Literal["zero"], int, int, int, bool] | Flush | tuple[Literal["complete"], int]
"""("zero", id, sector, sectors, discard), a flush, or ("complete", id): the request of that id is."""
Event = Mark | Request | tuple[Literal["write"], int, int, int, bool, bool]
"""What a recording has: marks, requests, and ("write", id, sector, sectors, fua, preflush)."""
CallNote = tuple[int, Literal["call-begins"], int, str, str] | tuple[int, Literal["call-ends"], int, int]
"""(events before it, "call-begins", thread, program, call), or (events before it, "call-ends", thread, result)."""
NewEvent = (
    Mark
    | Request
    | tuple[Literal["write"], int, int, bytes, bool, bool]
    | tuple[Literal["call-begins"], int, str, str]
    | tuple[Literal["call-ends"], int, int]
)
"""What can be written to a recording: a write has its data, and notes of calls stand where they belong."""
Content = tuple[Literal["data"], int, bytes] | tuple[Literal["zeros"], int, int]
"""("data", sector, bytes) or ("zeros", sector, sectors)."""
Choices = Sequence[tuple[int, int]]

BELOW: int
"""The bit that marks the components of the state that was recovered, among those of a crash within its recovery."""

class Recording:
    """An open recording. OSError if it cannot be read, ValueError (with the byte) if it is damaged."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def disk_sectors(self) -> int:
        """Sectors (512 B) of the disk, or of all disks."""
    @property
    def disks(self) -> list[int]:
        """Sectors of each disk."""
    @property
    def metadata(self) -> str:
        """JSON text."""
    @property
    def digest(self) -> str:
        """SHA-256 of the content, hexadecimal."""
    def events(self) -> list[Event]: ...
    def calls(self) -> list[CallNote]:
        """Notes of the system calls that programs made on the target, in their order."""
    def data(self, event: int) -> bytes:
        """Data of the write that is event number `event`; IndexError for any other event."""
    def contents(self, end: int) -> list[Content]:
        """What the sectors that were written before event number `end` hold then: ascending, in the longest runs."""

class Interval:
    """The crash states of one crash interval, which are the same at each of its instants."""

    @property
    def index(self) -> int: ...
    @property
    def instants(self) -> list[tuple[int, int, int]]:
        """When the crash comes, in order: (event, started, returned).

        It comes just before that event (the number of events: after the end), when so many operations, set-up included,
        had been started and so many had returned. While writes with PREFLUSH are under way, several intervals may share
        their instants: one for each flush that is done. On `barrier` there is one for each flush that orders.
        """
    @property
    def before_event(self) -> int:
        """The event of the latest instant."""
    @property
    def started(self) -> int:
        """Operations that had been started at the latest instant."""
    @property
    def returned(self) -> int:
        """Operations that had returned at the latest instant."""
    @property
    def pieces(self) -> list[tuple[int, int, int]]:
        """In-flight pieces in submission order: (event that submitted it, sector, sectors).

        On the device model `prefix` they are whole writes in the order of completion.
        """
    @property
    def absent(self) -> list[int]:
        """Writes that had been submitted at the first instant, are not stable, and are kept in none of the states.

        They are given by their events. What is submitted between the instants is kept in none either.
        """
    @property
    def components(self) -> list[tuple[int, int, list[int]]]:
        """Independent choices: (first sector, number of sectors, weight of each version).

        The sectors are neighbours, except on `ordered` and `prefix`: there is one choice, how much was kept.
        """
    @property
    def states(self) -> int:
        """Number of crash states at each instant: 2 ** len(pieces); on `ordered` and `prefix` len(pieces) + 1.

        On `barrier` states that keep all pieces in front of the next flush are counted in the next interval only.
        """
    @property
    def contents(self) -> int:
        """Number of different disk contents."""
    def covered(self, choices: Choices) -> int:
        """Number of crash states that agree with `choices`; ValueError if a component is chosen twice."""
    def lost(self, choices: Choices) -> list[int]:
        """Pieces lost in the state `choices`, as indices into `pieces`: the fewest that give its disk content.

        There is one such set: what is lost in two states of one content is enough to give that content.
        """
    def torn(self, choices: Choices) -> int:
        """Number of writes of which that state keeps only a part."""

def intervals(recording: Recording, base_path: str | PathLike[str], model: str) -> list[Interval]:
    """The crash intervals of a recording on the device model `model`.

    ValueError for an unknown model, and for a recording with so many pieces that this would take minutes or gigabytes:
    2^22 in all its discards, or 2^25 in all its crash intervals.
    """

def state_bytes(
    recording: Recording,
    base_path: str | PathLike[str],
    model: str,
    interval: int,
    choices: Choices,
    sector: int,
    sectors: int,
) -> bytes:
    """Content of a crash state from `sector` on.

    IndexError for what is not on the disk; ValueError if the interval leaves more contents than are told apart.
    """

def write_state(
    recording: Recording,
    base_path: str | PathLike[str],
    model: str,
    interval: int,
    choices: Choices,
    path: str | PathLike[str],
) -> None:
    """Write the disk of a crash state to the file `path`, zeros as holes. Errors as of `state_bytes`, and OSError."""

def device_models() -> list[str]:
    """Names of the device models, without those of other atomic units (such as cache:16384)."""

class DeviceModel:
    """A drive, by one of its names; ValueError where there is none of that name."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str:
        """The shortest one: `torn` for cache:512."""
    @property
    def untorn(self) -> str:
        """The name of the same drive with an atomic unit of 4 KiB."""
    @property
    def tears_blocks(self) -> bool:
        """Whether a crash may keep a part of a block (4096 B)."""
    @property
    def honours_flush(self) -> bool:
        """Whether a completed flush makes anything stable."""
    @property
    def prose(self) -> str:
        """What the drive does, in words."""

def write_recording(
    path: str | PathLike[str], disk_sectors: int | Sequence[int], metadata: str, events: Iterable[NewEvent]
) -> None:
    """Write a recording of `events`, one by one. `disk_sectors` are those of the one disk, or of each disk."""

def scan_dm_log_writes(log_path: str | PathLike[str], disk_sectors: int) -> dict[str, Any]:
    """What the log of a disk with `disk_sectors` (512 B) holds.

    ValueError, with the entry and the byte, for a damaged log, one that does not fit the disk, and what is no file.
    Counts: log_sector_bytes, entries, writes, fua_writes (of these), flushes, discards, metadata_flags, marks_left_out,
    padded_writes (their data was shorter than their sectors). `marks`: (number of events before it in the recording,
    text). `goes_on`: behind the last entry stands what looks like one more. What counting states costs: pieces in
    flight in the largest crash interval (`interval_pieces_max`) and summed over all (`interval_pieces`).
    """

def read_dm_log_writes(log_path: str | PathLike[str], disk_sectors: int) -> list[tuple[tuple[Any, ...], int]]:
    """What a log holds, in order, each with the number of events before it in the recording. All of it is in memory.

    ("write", sector, bytes, fua), ("discard", sector, sectors), ("flush", fua), ("mark", text). FUA is left on a flush
    that device mapper has cut off a write. Errors as of `scan_dm_log_writes`.
    """

def count_states(recording: Recording, base_path: str | PathLike[str], model: str) -> tuple[int, int]:
    """Number of crash intervals, and of crash states in all of them: what `intervals` says, in less memory.

    Errors as of `intervals`.
    """

def import_dm_log_writes(
    log_path: str | PathLike[str], disk_sectors: int, out_path: str | PathLike[str], metadata: str
) -> None:
    """Write the recording of a log to `out_path`, whole or not at all. Errors as of `scan_dm_log_writes`."""

def export_dm_log_writes(
    recording: Recording, out_path: str | PathLike[str], marks: Sequence[tuple[int, str]]
) -> dict[str, int]:
    """Write a recording as a log, whole or not at all. A mark is (number of events before it, text), in order.

    Counts: entries; unfinished (never completed, not in the log); overtaken (completed after a later write over the
    same sectors); fua_behind_flush (FUA writes that stand behind a flush that was under way).
    """

def system_calls() -> list[tuple[str, str, list[tuple[int | None, int]]]]:
    """The table of system calls (recorders/stopped/src/system_calls.rs): name, effect, and places of path arguments.

    A path's place comes with that of the descriptor of the folder from which it starts; None: the working directory.
    """
