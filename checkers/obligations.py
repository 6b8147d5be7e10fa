"""What operations have made durable of files: contents, attributes and, for symbolic links, targets.

`durability.py` says in prose which operation makes what durable. Everything here is about an inode, whatever name it is
found under.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from postcrash.checkers.bindings import Barrier, Bindings
from postcrash.checkers.inode_history import inode_history
from postcrash.checkers.shifts import displaced, sources_at
from postcrash.model import Entry, Persistence, Route, Segment, Workload, all_from, sources
from postcrash.model.segments import ZERO, Segments, clipped, write_of
from postcrash.model.units import BLOCK_BYTES
from postcrash.properties.wording import shown_bytes, shown_source

_PARTS = (Persistence.STORES, Persistence.OWN)
"""The kinds that make only a part of a file durable."""
_ALL_OF_IT = (Persistence.EVERYTHING, Persistence.FILE)
"""The kinds that make attributes durable too."""


class Obligation(Protocol):
    """Something that must hold for an inode after a crash."""

    def broken_by(self, entry: Entry) -> str:
        """How `entry`, found to be the inode, breaks the obligation. Empty if it does not."""
        ...


# Which obligations


class Contents:
    """The obligations of one history about what files hold."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        history = bindings.history
        self._terms = _terms(history.workload, history.started)
        self._barriers: dict[int, tuple[Barrier, ...]] = {}
        self._found: dict[int, list[Obligation]] = {}

    @property
    def is_any(self) -> bool:
        """Whether anything at all is promised about a file."""
        return any(self._obligations(inode) for inode in self._bindings.inode_history.links)

    def concern(self, path: str, entry: Entry) -> bool:
        """Whether something was promised of an inode that the entry at `path` can be."""
        candidates = self._bindings.inodes(path)
        return any(self._terms.is_alike(inode, entry) and self._obligations(inode) for inode in candidates)

    def broken(self, path: str, entry: Entry) -> tuple[int, str] | None:
        """How the entry at `path` breaks promises, whichever inode it is, and after how many operations."""
        candidates = sorted(self._bindings.inodes(path))
        alike = [inode for inode in candidates if self._terms.is_alike(inode, entry)]
        found = [self._first_broken(inode, entry) for inode in alike]
        broken = [each for each in found if each is not None]
        if not broken or len(broken) < len(found):
            return None
        return broken[0][0], "; and if it is another file, ".join(dict.fromkeys(message for _, message in broken))

    def could_be(self, inode: int, entry: Entry) -> bool:
        """Whether `entry` keeps everything that was promised of the inode."""
        return self._terms.is_alike(inode, entry) and self._first_broken(inode, entry) is None

    def _first_broken(self, inode: int, entry: Entry) -> tuple[int, str] | None:
        """The first broken obligation, in the order in which they were made."""
        if not any(obligation.broken_by(entry) for obligation in self._obligations(inode)):
            return None
        for barrier in self._barriers_of(inode):
            for obligation in self._terms.all_of(inode, barrier):
                if message := obligation.broken_by(entry):
                    return barrier.count, f"{self._bindings.describe(barrier)}, but {message}"
        raise AssertionError("an obligation is broken that was never made")

    def _barriers_of(self, inode: int) -> tuple[Barrier, ...]:
        """The barriers that make something of the inode durable, in order."""
        if inode not in self._barriers:
            about = (b for b in self._bindings.barriers if b.is_everything or b.inode == inode)
            started = self._bindings.history.started
            self._barriers[inode] = tuple(
                b for b in about if self._bindings.inode_history.has_name(inode, b.count, started)
            )
        return self._barriers[inode]

    def _obligations(self, inode: int) -> list[Obligation]:
        """Obligations from which all others about the inode follow. Many trees are compared with them."""
        if inode not in self._found:
            self._found[inode] = self._made(inode)
        return self._found[inode]

    def _made(self, inode: int) -> list[Obligation]:
        found: list[Obligation] = []
        reach, is_whole = -1, False
        for barrier in reversed(self._barriers_of(inode)):
            content = self._terms.content(inode, barrier)
            if content is not None and content.reach > reach:
                found.append(content)
                reach = reach if barrier.persistence in _PARTS else content.reach
            if barrier.persistence in _ALL_OF_IT and not is_whole:
                found += self._terms.others(inode, barrier)
                is_whole = True
        return found


class _Terms:
    """What each barrier of a workload makes durable of each inode, for one number of started operations.

    This is the same in every history that has the barrier, however many operations had returned.
    """

    def __init__(self, workload: Workload, started: int) -> None:
        self._workload, self._started = workload, started
        self._inode_history = inode_history(workload)
        self._contents: dict[tuple[int, int], FileContent | None] = {}
        self._others: dict[tuple[int, int], tuple[Obligation, ...]] = {}

    def is_alike(self, inode: int, entry: Entry) -> bool:
        """Whether the inode is of the entry's type."""
        return self._inode_history.type(inode) == entry.type

    def all_of(self, inode: int, barrier: Barrier) -> tuple[Obligation, ...]:
        """Everything that the barrier makes durable of the inode."""
        content = self.content(inode, barrier)
        return (*((content,) if content else ()), *self.others(inode, barrier))

    def content(self, inode: int, barrier: Barrier) -> "FileContent | None":
        """What the barrier makes durable of a file's size and bytes. None if the inode is not a file."""
        key = inode, barrier.count
        if key not in self._contents:
            states = self._states(inode, barrier)
            is_file = states[0].type == "file"
            self._contents[key] = _known_content(self._workload, barrier, inode, len(states)) if is_file else None
        return self._contents[key]

    def others(self, inode: int, barrier: Barrier) -> tuple[Obligation, ...]:
        """What the barrier makes durable of attributes and of a symbolic link's target."""
        key = inode, barrier.count
        if key not in self._others:
            states = self._states(inode, barrier)
            former = self._inode_history.states(inode, 0, barrier.count)
            names = {name for entry in former for name, _ in entry.xattrs}
            attributes = tuple(_attributes(states, names)) if barrier.persistence in _ALL_OF_IT else ()
            target = (LinkTarget(states[0].target),) if states[0].target else ()
            self._others[key] = (*attributes, *target)
        return self._others[key]

    def _states(self, inode: int, barrier: Barrier) -> list[Entry]:
        return self._inode_history.states(inode, barrier.count, self._started)


@lru_cache(maxsize=256)
def _terms(workload: Workload, started: int) -> _Terms:
    return _Terms(workload, started)


@lru_cache(maxsize=4096)
def _known_content(workload: Workload, barrier: Barrier, inode: int, states: int) -> "FileContent":
    """What the barrier makes durable if the file has so many states from then on. Most operations add none."""
    known = inode_history(workload)
    return _content(workload, barrier, known.states(inode, barrier.count, len(known.trees))[:states])


# What they say


def _content(workload: Workload, barrier: Barrier, states: list[Entry]) -> "FileContent":
    first, sizes = states[0], [entry.size for entry in states]
    if barrier.persistence in _PARTS:
        return _partial_content(workload, states, _part(barrier, workload, first))
    moved = displaced(workload, (entry.segments for entry in states))
    return FileContent(workload, min(sizes), max(sizes), _runs(states, first.segments, moved), first.size)


def _partial_content(workload: Workload, states: list[Entry], wanted: Segments) -> "FileContent":
    moved = displaced(workload, (entry.segments for entry in states))
    end = max((run.end for run in wanted), default=0)
    size_min = min(end, *(entry.size for entry in states))
    return FileContent(workload, size_min, None, _runs(_around(states, wanted), wanted, moved), end)


@lru_cache(maxsize=4096)
def whole_write(workload: Workload, number: int, inode: int, started: int) -> "FileContent":
    """What the write by operation `number` would have made durable with O_SYNC, once `started` operations had started.

    The file shows no less than this if none of the write's bytes is missing.
    """
    states = inode_history(workload).states(inode, number + 1, started)
    return _partial_content(workload, states, clipped(states[0].segments, *workload.operations[number].byte_range))


def _around(states: list[Entry], wanted: Segments) -> list[Entry]:
    """The parts of `states` in the blocks of `wanted` that differ. Of many writes to a file, few are in one place."""
    if not wanted:
        return states[:1]
    start, end = wanted[0].start - wanted[0].start % BLOCK_BYTES, wanted[-1].end + -wanted[-1].end % BLOCK_BYTES
    found: dict[Segments, Entry] = {}
    for entry in states:
        first = bisect_right(entry.segments, start, key=lambda segment: segment.end)
        last = bisect_left(entry.segments, end, key=lambda segment: segment.start)
        part = clipped(entry.segments[first:last], start, end)
        if part not in found:
            found[part] = replace(entry, segments=part)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class SourceRun:
    """The bytes from `start` up to `end` come from one of `sources`."""

    start: int
    end: int
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file has an allowed size, and those of its bytes that are in `runs` come from where they should."""

    workload: Workload
    size_min: int
    size_max: int | None
    runs: tuple[SourceRun, ...]
    reach: int
    """The end of the bytes that were promised."""

    def broken_by(self, entry: Entry) -> str:
        """The size or some bytes are wrong, or cannot be read."""
        if entry.error:
            return shown_bytes(self.workload, entry.path, entry, 0, 0)
        if entry.size < self.size_min or (self.size_max is not None and entry.size > self.size_max):
            return f"{entry.path} is {entry.size} bytes long; it promised {self._shown_size()}"
        for run in self.runs:
            end = min(run.end, entry.size)
            if run.start < end and not all_from(entry, run.start, end, run.sources):
                found = shown_bytes(self.workload, entry.path, entry, run.start, end)
                meant = " or ".join(sorted(shown_source(self.workload, source) for source in run.sources))
                return f"{found}; it promised bytes {run.start} to {run.end} that are {meant}"
        return ""

    def _shown_size(self) -> str:
        if self.size_max is None:
            return f"at least {self.size_min}"
        return f"{self.size_min}" if self.size_min == self.size_max else f"{self.size_min} to {self.size_max}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An extended attribute has one of `values` (in hexadecimal). None stands for a missing attribute."""

    name: str
    values: frozenset[str | None]

    def broken_by(self, entry: Entry) -> str:
        """The attribute has another value, or is missing, or should be missing."""
        if entry.error:
            return ""
        found = dict(entry.xattrs).get(self.name)
        if found in self.values:
            return ""
        meant = " or ".join(sorted(map(_shown_value, self.values)))
        return f"attribute {self.name} of {entry.path} is {_shown_value(found)}; it promised {meant}"


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A symbolic link points to its target, and a device has its number."""

    target: str

    def broken_by(self, entry: Entry) -> str:
        """It has another target or number."""
        if entry.error or entry.target == self.target:
            return ""
        what = "points to" if entry.type == "symlink" else "is the device"
        return f"{entry.path} {what} {entry.target!r}; it promised {self.target!r}"


def _shown_value(value: str | None) -> str:
    return "missing" if value is None else repr(bytes.fromhex(value))


def _part(barrier: Barrier, workload: Workload, entry: Entry) -> Segments:
    """The bytes that msync (stored through a mapping, in its range) or an O_(D)SYNC write (its own) made durable."""
    operation = barrier.operation
    assert operation is not None
    within = entry.segments
    if operation.offset is not None and operation.length is not None:
        within = clipped(entry.segments, *operation.byte_range)
    if barrier.persistence is Persistence.OWN:
        return within
    stored = {each.tag for each in workload.operations if each.form.data is Route.MAPPING}
    return tuple(run for run in within if (write := write_of(run.source)) and write[0] in stored)


def _runs(entries: list[Entry], wanted: Segments, moved: frozenset[Segment]) -> tuple[SourceRun, ...]:
    """Where the bytes of `wanted` may come from, if a crash may show any of `entries` or a mixture, or `moved` bytes.

    A run that some later state changes may show any of its states. Bytes of other origin are no broken obligation where

    - a hole, or what is past the end, is filled later: a block may have been allocated but not written. Zero and stale
      bytes may be in all of the block where there were zeros before;
    - bytes are moved extent by extent: a hole can be in between;
    - bytes are taken away from the middle of a block on: the rest of the block is made zero before the end is moved.
    """
    changed = _blocks_where(_is_changed, entries)
    filled = _blocks_where(_is_filled, entries)
    cut = _cut_blocks(entries)
    edges = {edge for run in changed + cut for edge in run}
    edges |= _edges(wanted).union(_edges(moved), *(_edges(e.segments) for e in entries))
    moves = any(_is_moved(entries, start, end) for start, end in _pieces(entries))
    runs = []
    for start, end in pairwise(sorted(edges)):
        if clipped(wanted, start, end):
            allowed = _sources_of(entries, start, end) | sources_at(moved, start, end)
            if allowed & {ZERO, None} and _overlaps(filled, start, end):
                allowed |= {ZERO, "stale"}
            if _overlaps(changed, start, end) and (_is_moved(entries, start, end) or (None in allowed and moves)):
                allowed |= {ZERO}
            if None in allowed and _overlaps(cut, start, end):
                allowed |= {ZERO}
            runs.append(SourceRun(start, end, frozenset(source for source in allowed if source is not None)))
    return _joined(runs)


def _overlaps(ranges: list[tuple[int, int]], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in ranges)


def _is_filled(entries: list[Entry], start: int, end: int) -> bool:
    """Whether a later state has bytes there, where the state before has a hole or has ended already."""
    empty = [bool(sources(entry, start, end) & {ZERO, None}) for entry in entries]
    return any(before and not after for before, after in pairwise(empty))


def _is_moved(entries: list[Entry], start: int, end: int) -> bool:
    """Whether a later state has bytes there that the first state, which was made durable, has elsewhere or nowhere."""
    before = {write_of(source or "") for source in _sources_of(entries[:1], start, end)} - {None}
    later = {write_of(source or "") for source in _sources_of(entries[1:], start, end)} - {None} - before
    return any(write is not None and (write[1] or write[0] in {each[0] for each in before if each}) for write in later)


def _pieces(entries: list[Entry]) -> list[tuple[int, int]]:
    """The ranges between the places where any of `entries` passes from one source to another."""
    return list(pairwise(sorted(frozenset[int]().union(*(_edges(entry.segments) for entry in entries)))))


def _blocks_where(holds: Callable[[list[Entry], int, int], bool], entries: list[Entry]) -> list[tuple[int, int]]:
    """The pieces of which something holds, extended to whole blocks."""
    found = [(start, end) for start, end in _pieces(entries) if holds(entries, start, end)]
    return [(start - start % BLOCK_BYTES, end + -end % BLOCK_BYTES) for start, end in found]


def _cut_blocks(entries: list[Entry]) -> list[tuple[int, int]]:
    """The blocks in whose middle the file ends in one of `entries` and goes on in another."""
    longest = max((entry.size for entry in entries), default=0)
    blocks = {entry.size // BLOCK_BYTES for entry in entries if entry.size % BLOCK_BYTES and entry.size < longest}
    return [(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES) for block in sorted(blocks)]


def _is_changed(entries: list[Entry], start: int, end: int) -> bool:
    """Whether the entries differ there."""
    return len(_sources_of(entries, start, end)) > 1


def _edges(segments: Iterable[Segment]) -> frozenset[int]:
    return frozenset(edge for segment in segments for edge in (segment.start, segment.end))


def _sources_of(entries: list[Entry], start: int, end: int) -> frozenset[str | None]:
    return frozenset[str | None]().union(*(sources(entry, start, end) for entry in entries))


def _joined(runs: list[SourceRun]) -> tuple[SourceRun, ...]:
    joined: list[SourceRun] = []
    for run in runs:
        if joined and joined[-1].end == run.start and joined[-1].sources == run.sources:
            run = SourceRun(joined.pop().start, run.end, run.sources)
        joined.append(run)
    return tuple(joined)


def _attributes(states: list[Entry], former: set[str]) -> Iterator[Attribute]:
    """For each attribute that the inode has, may have or had: the values that it may have now."""
    found = [dict(entry.xattrs) for entry in states]
    for name in sorted(former.union(*found)):
        yield Attribute(name, frozenset(state.get(name) for state in found))
