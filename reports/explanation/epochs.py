"""Sorts the requests of a recording up to a crash into epochs between flushes, with their fates.

Epochs contain the writes after the set-up, and earlier writes that were in flight at the crash. If the crash kept only
a part of a write, each run of its pieces is an entry of its own. A flush with nothing before it ends no epoch.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby

from postcrash._core import Interval, Recording
from postcrash.model import Workload
from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.events import DurableEvent, Event, WriteEvent, recording_events
from postcrash.reports.explanation.block_content import describe, written_by
from postcrash.store.explanation_data import Epoch, ExplainedWrite, WriteStatus

EPOCHS_MAX = 40
STABLE_EPOCHS_MAX = 3
"""How many epochs are shown before the first that has a write in flight."""
EPOCH_WRITES_MAX = 24
LOST_MAX = 200

_IMPORTANCE: tuple[WriteStatus, ...] = ("lost", "kept", "stable")


@dataclass(frozen=True, slots=True)
class WritePart:
    """A request, a run of its pieces, or several of these one after the other on the disk.

    `origins` says where each part comes from: the event, how many of its sectors are skipped, and how many are taken.
    """

    origins: tuple[tuple[int, int, int], ...]
    kind: str
    sector: int
    sectors: int
    flags: str
    during: int
    status: WriteStatus

    def data(self, recording: Recording) -> bytes:
        """The bytes that were written. This is for writes only."""
        return b"".join(
            recording.data(event)[skipped * SECTOR_BYTES : (skipped + sectors) * SECTOR_BYTES]
            for event, skipped, sectors in self.origins
        )


@dataclass(frozen=True, slots=True)
class WriteDescriptions:
    """Describes writes by the workload's bytes and by the names from file system tools."""

    recording: Recording
    workload: Workload
    names: Mapping[WritePart, str]

    def explained(self, part: WritePart) -> ExplainedWrite:
        """Describes the write."""
        what = describe(part.data(self.recording), self.workload) if part.kind == "write" else part.kind
        name = self.names.get(part, "")
        return ExplainedWrite(
            what=what,
            name=name,
            sector=part.sector,
            sectors=part.sectors,
            flags=part.flags,
            during=part.during,
            status=part.status,
            **self._disk(part.sector),
        )

    def _disk(self, sector: int) -> dict[str, int]:
        """The disk that the sector is on, if there are several, and where the disk begins."""
        sizes = self.recording.disks
        ends = list(accumulate(sizes))
        number = bisect_right(ends, sector)
        return {"disk": number, "begins": ends[number] - sizes[number]} if len(sizes) > 1 else {}


@dataclass(slots=True)
class RawEpoch:
    """An epoch before it is shortened and described."""

    parts: list[WritePart] = field(default_factory=list)
    ended: str = "crash"

    @property
    def is_stable(self) -> bool:
        """Whether no crash could lose any of it."""
        return all(part.status == "stable" for part in self.parts)


def raw_epochs(recording: Recording, interval: Interval, lost: frozenset[int], crash: int) -> list[RawEpoch]:
    """Returns the epochs up to a crash before the event `crash` in `interval` that lost the pieces numbered `lost`.

    A write is called stable if every crash state of the interval keeps it.
    """
    walk = _Walk(_fates(interval, lost), interval)
    for index, event in enumerate(recording_events(recording)[:crash]):
        walk.take(index, event)
    return [RawEpoch(_merged(epoch.parts), epoch.ended) for epoch in walk.epochs if epoch.parts]


def _merged(parts: list[WritePart]) -> list[WritePart]:
    """Merges writes that follow each other in time and on the disk and had the same fate."""
    merged: list[WritePart] = []
    for part in parts:
        last = merged[-1] if merged else None
        if last is not None and _continues(last, part):
            sectors = last.sectors + part.sectors
            merged[-1] = replace(last, origins=last.origins + part.origins, sectors=sectors)
        else:
            merged.append(part)
    return merged


def _continues(last: WritePart, part: WritePart) -> bool:
    alike = (last.kind, last.flags, last.during, last.status) == (part.kind, part.flags, part.during, part.status)
    return alike and last.sector + last.sectors == part.sector and not part.flags


def shown_parts(raw: list[RawEpoch]) -> list[WritePart]:
    """Returns the parts that `shown_epochs` and `shown_lost` show."""
    in_epochs = [part for epoch in raw[first_shown(raw) :] for part in parts_shown(epoch)]
    return list(dict.fromkeys([*in_epochs, *_lost(raw)[:LOST_MAX]]))


def shown_epochs(raw: list[RawEpoch], descriptions: WriteDescriptions) -> tuple[tuple[Epoch, ...], int]:
    """Returns the last epochs, from shortly before the first in-flight write, and the number of earlier ones."""
    omitted = first_shown(raw)
    shown = list(enumerate(raw))[omitted:]
    return tuple(_shown_epoch(number + 1, epoch, descriptions) for number, epoch in shown), omitted


def shown_lost(raw: list[RawEpoch], descriptions: WriteDescriptions) -> tuple[tuple[ExplainedWrite, ...], int]:
    """Returns the lost writes in order, and how many more there are."""
    lost = _lost(raw)
    return tuple(map(descriptions.explained, lost[:LOST_MAX])), max(0, len(lost) - LOST_MAX)


def first_shown(raw: list[RawEpoch]) -> int:
    """Returns the number of the first epoch that `shown_epochs` shows, from 0."""
    in_flight = [number for number, epoch in enumerate(raw) if not epoch.is_stable]
    return max(0, min([len(raw), *in_flight]) - STABLE_EPOCHS_MAX, len(raw) - EPOCHS_MAX)


def _lost(raw: list[RawEpoch]) -> list[WritePart]:
    return [part for epoch in raw for part in epoch.parts if part.status == "lost"]


def parts_shown(epoch: RawEpoch) -> list[WritePart]:
    """Returns the parts of one epoch that `shown_epochs` shows, in its order."""
    ranked = sorted(range(len(epoch.parts)), key=lambda i: _IMPORTANCE.index(epoch.parts[i].status))
    return [epoch.parts[i] for i in sorted(ranked[:EPOCH_WRITES_MAX])]


def crash_event(interval: Interval, started: int, returned: int) -> int:
    """Returns the event before which a crash comes with this many operations started and returned.

    Raises LookupError if the interval has no such instant.
    """
    for event, *operations in interval.instants:
        if operations == [started, returned]:
            return event
    raise LookupError(
        f"crash interval {interval.index}: in this recording it has no instant at which {started} operations had "
        f"started and {returned} had returned, as in the finding"
    )


def unsent(recording: Recording, crash: int, workload: Workload, started: int) -> tuple[str, ...]:
    """Returns the recorded operations that had `started` and none of whose bytes had been sent to the disk, as text.

    The crash comes before the event `crash`.
    """
    events = recording_events(recording)
    sent: set[int] = set()
    for index in range(events.index(DurableEvent()), crash):
        if isinstance(events[index], WriteEvent):
            sent |= written_by(recording.data(index), workload)
    # Lines of a program that never ended are not operations of the workload.
    started_after_setup = range(len(workload.setup), min(started, len(workload.operations)))
    writing = [number for number in started_after_setup if workload.operations[number].tag is not None]
    return tuple(f"{workload.operations[n]} (operation {n + 1})" for n in writing if n not in sent)


def _shown_epoch(number: int, epoch: RawEpoch, descriptions: WriteDescriptions) -> Epoch:
    writes = tuple(map(descriptions.explained, parts_shown(epoch)))
    return Epoch(number, epoch.ended, writes, len(epoch.parts) - len(writes))


_Fate = tuple[int, int, WriteStatus]


def _fates(interval: Interval, lost: frozenset[int]) -> dict[int, list[_Fate]]:
    """Returns for each in-flight event the runs of its pieces that were kept or lost: sector, sectors, status."""
    pieces: dict[int, list[_Fate]] = defaultdict(list)
    for number, (event, sector, sectors) in enumerate(interval.pieces):
        pieces[event].append((sector, sectors, "lost" if number in lost else "kept"))
    return {event: list(_runs(fates)) for event, fates in pieces.items()}


def _runs(fates: list[_Fate]) -> Iterator[_Fate]:
    for status, group in groupby(fates, key=lambda fate: fate[2]):
        members = list(group)
        yield members[0][0], sum(sectors for _, sectors, _ in members), status


class _Walk:
    """Sorts the requests of a recording into epochs, event by event."""

    def __init__(self, fates: dict[int, list[_Fate]], interval: Interval) -> None:
        self.epochs = [RawEpoch()]
        self._fates = fates
        self._absent = frozenset(interval.absent)
        (self._first_instant, *_), *_ = interval.instants
        self._flushing: dict[int, RawEpoch] = {}
        self._has_recorded_operations = False
        self._during = 0

    def take(self, index: int, event: Event) -> None:
        """Go on to the event number `index`."""
        match event:
            case ("write", ident, sector, sectors, fua, preflush):
                if preflush:
                    self._flush(ident)
                flags = " ".join(name for name, is_set in (("PREFLUSH", preflush), ("FUA", fua)) if is_set)
                self._submit(index, "write", sector, sectors, flags)
            case ("zero", _, sector, sectors, discard):
                self._submit(index, "discard" if discard else "write-zeroes", sector, sectors, "")
            case ("flush", ident, _):
                self._flush(ident)
            case ("complete", ident) if ident in self._flushing:
                self._flushing.pop(ident).ended = "flush"
            case ("started", operation):
                self._during = operation + 1
            case ("returned", *_):
                self._during = 0
            case ("durable",):
                self._has_recorded_operations = True

    def _without_pieces(self, index: int) -> WriteStatus:
        """Returns the fate of a request of which nothing is in flight."""
        return "lost" if index in self._absent or index >= self._first_instant else "stable"

    def _flush(self, ident: int) -> None:
        if self.epochs[-1].parts:
            self.epochs[-1].ended = "flush, under way at the crash"
            self._flushing[ident] = self.epochs[-1]
            self.epochs.append(RawEpoch())

    def _submit(self, index: int, kind: str, sector: int, sectors: int, flags: str) -> None:
        whole = [(sector, sectors, self._without_pieces(index))] if self._has_recorded_operations else []
        for start, length, status in self._fates.get(index, whole):
            self.epochs[-1].parts.append(
                WritePart(
                    origins=((index, start - sector, length),),
                    kind=kind,
                    sector=start,
                    sectors=length,
                    flags=flags,
                    during=self._during,
                    status=status,
                )
            )
