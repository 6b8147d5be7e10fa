"""What a history promises of the tree after a crash: names that are there, names that are gone, contents, attributes.

`durability.py` says in prose which operation promises what.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from postcrash.checkers.bindings import Barrier, Bindings, covers, paths_ever
from postcrash.checkers.links import parent
from postcrash.model import Entry, EntryType, Tree, Workload, all_from, sources
from postcrash.model.segments import ZERO, Segments, clipped
from postcrash.properties.wording import operation_at, shown_bytes, shown_source

_O_SYNC = ("write-osync", "write-odsync", "dwrite-osync")
BLOCK_BYTES = 4096
"""Blocks of the file systems under test: what is allocated, and may show stale bytes, as one."""


class Promise(Protocol):
    """Something that must be so after a crash."""

    @property
    def path(self) -> str:
        """The name that it is about."""
        ...

    def broken_by(self, tree: Tree) -> str:
        """How `tree` breaks the promise; empty if it does not."""
        ...


@dataclass(frozen=True, slots=True)
class Present:
    """The name is there, as one of `types`."""

    path: str
    said: str
    types: frozenset[EntryType]

    def broken_by(self, tree: Tree) -> str:
        """The name is missing, or another kind of thing."""
        entry = tree.get(self.path)
        if entry is None:
            return f"{self.said}, but {self.path} is missing"
        if entry.type not in self.types:
            return f"{self.said}, but {self.path} is a {entry.type}; it promised a {' or '.join(sorted(self.types))}"
        return ""


@dataclass(frozen=True, slots=True)
class Gone:
    """The name is not there, as `removal` took it away."""

    path: str
    said: str
    removal: str

    def broken_by(self, tree: Tree) -> str:
        """The name is there."""
        return f"{self.said} after {self.removal}, but {self.path} is there" if self.path in tree else ""


@dataclass(frozen=True, slots=True)
class Run:
    """The bytes from `start` up to `end` come from one of `sources`."""

    start: int
    end: int
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class Content:
    """A file's size is in bounds, and of the bytes that are there those of `runs` come from where they should."""

    path: str
    said: str
    workload: Workload
    size_min: int
    size_max: int | None
    runs: tuple[Run, ...]

    def broken_by(self, tree: Tree) -> str:
        """The size or some bytes are wrong; a name that is missing, or no file, is not this promise's business."""
        entry = tree.get(self.path)
        if entry is None or entry.type != "file":
            return ""
        if entry.error:
            return f"{self.said}, but {shown_bytes(self.workload, self.path, entry, 0, 0)}"
        if entry.size < self.size_min or (self.size_max is not None and entry.size > self.size_max):
            return f"{self.said}, but {self.path} is {entry.size} bytes long; it promised {self._shown_size()}"
        for run in self.runs:
            end = min(run.end, entry.size)
            if run.start < end and not all_from(entry, run.start, end, run.sources):
                found = shown_bytes(self.workload, self.path, entry, run.start, end)
                meant = " or ".join(sorted(shown_source(self.workload, source) for source in run.sources))
                return f"{self.said}, but {found}; it promised bytes {run.start} to {run.end} that are {meant}"
        return ""

    def _shown_size(self) -> str:
        if self.size_max is None:
            return f"at least {self.size_min}"
        return f"{self.size_min}" if self.size_min == self.size_max else f"{self.size_min} to {self.size_max}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An extended attribute has one of `values` (in hexadecimal; None: it is not there)."""

    path: str
    said: str
    name: str
    values: frozenset[str | None]

    def broken_by(self, tree: Tree) -> str:
        """The attribute is another, missing, or should be."""
        entry = tree.get(self.path)
        if entry is None or entry.error:
            return ""
        found = dict(entry.xattrs).get(self.name)
        if found in self.values:
            return ""
        meant = " or ".join(sorted(map(_shown_value, self.values)))
        return f"{self.said}, but attribute {self.name} of {self.path} is {_shown_value(found)}; it promised {meant}"


@dataclass(frozen=True, slots=True)
class Target:
    """A symbolic link, if the name is one, points where it did."""

    path: str
    said: str
    target: str

    def broken_by(self, tree: Tree) -> str:
        """It points elsewhere."""
        entry = tree.get(self.path)
        if entry is None or entry.error or entry.type != "symlink" or entry.target == self.target:
            return ""
        return f"{self.said}, but {self.path} points to {entry.target!r}; it promised {self.target!r}"


def _shown_value(value: str | None) -> str:
    return "missing" if value is None else repr(bytes.fromhex(value))


# Names


def names_promised(bindings: Bindings) -> Iterator[Promise]:
    """The names that must be there, and those that must not."""
    last = bindings.history.started
    seen = set()
    for barrier in bindings.barriers:
        for path in paths_ever(bindings.trees(last)):
            if path not in seen and bindings.is_durable(path, barrier.count) and bindings.stays(path, barrier.count):
                seen.add(path)
                types = frozenset(tree[path].type for tree in bindings.trees(barrier.count))
                yield Present(path, bindings.said(bindings.binder(path, barrier.count)), types)
        yield from _gone(bindings, barrier)


def _gone(bindings: Bindings, barrier: Barrier) -> Iterator[Gone]:
    before = bindings.history.trees[: barrier.count]
    after = bindings.trees(barrier.count)
    for path in paths_ever(before):
        directory = parent(path)
        if any(path in tree for tree in after) or not covers(barrier, path):
            continue
        is_certain = bindings.stays(directory, barrier.count) and _keeps_its_inode(after, directory)
        if is_certain and bindings.is_durable(directory, barrier.count):
            yield Gone(path, bindings.said(barrier), _removal(bindings, path, barrier.count))


def _keeps_its_inode(trees: tuple[Tree, ...], path: str) -> bool:
    return len({tree[path].inode for tree in trees}) == 1


def _removal(bindings: Bindings, path: str, count: int) -> str:
    """The operation that last took `path` away."""
    trees = bindings.history.trees[: count + 1]
    removed = [index for index, (old, new) in enumerate(pairwise(trees)) if path in old and path not in new]
    return operation_at(bindings.history.workload, removed[-1])


# Contents


def contents_promised(bindings: Bindings) -> Iterator[Promise]:
    """What files and symbolic links must hold if their names are there."""
    for barrier in bindings.barriers:
        tree = bindings.history.trees[barrier.count]
        for path in sorted(tree.paths()):
            if _is_flushed(barrier, tree, path) and _is_unmistakable(bindings, path, barrier.count):
                yield from _promised(bindings, barrier, path)


def _is_flushed(barrier: Barrier, tree: Tree, path: str) -> bool:
    """Whether the barrier says something of what is behind `path`, be it by this name or another."""
    operation = barrier.operation
    return operation is None or barrier.is_everything or tree[operation.path].inode == tree[path].inode


def _is_unmistakable(bindings: Bindings, path: str, count: int) -> bool:
    """Whether `path`, if it is found, can only be the inode that it is after `count` operations."""
    trees = bindings.trees(count)
    if not bindings.stays(path, count) or not _keeps_its_inode(trees, path):
        return False
    return bindings.is_steady(path, count, count if bindings.is_durable(path, count) else 0)


def _promised(bindings: Bindings, barrier: Barrier, path: str) -> Iterator[Promise]:
    entries = [tree[path] for tree in bindings.trees(barrier.count)]
    said, workload, first = bindings.said(barrier), bindings.history.workload, entries[0]
    word = barrier.operation.word if barrier.operation else "sync"
    if first.type == "file":
        if word in ("msync", *_O_SYNC):
            wanted = _part(barrier, workload, first)
            size = max((run.end for run in wanted), default=0)
            yield Content(first.path, said, workload, min(size, *_sizes(entries)), None, _runs(entries, wanted))
        else:
            sizes = _sizes(entries)
            yield Content(first.path, said, workload, min(sizes), max(sizes), _runs(entries, first.segments))
    if word in ("fsync", "sync", "syncfs"):
        former = [tree.get(path) for tree in bindings.history.trees[: barrier.count]]
        names = {name for entry in former if entry and entry.inode == first.inode for name, _ in entry.xattrs}
        yield from _attributes(said, entries, names)
    if first.type == "symlink":
        yield Target(first.path, said, first.target)


def _part(barrier: Barrier, workload: Workload, entry: Entry) -> Segments:
    """What msync (stored through a mapping, in its range) or an O_(D)SYNC write (its own range) says something of."""
    operation = barrier.operation
    assert operation is not None
    within = entry.segments
    if operation.offset is not None and operation.length is not None:
        within = clipped(entry.segments, operation.offset, operation.offset + operation.length)
    if operation.word in _O_SYNC:
        return within
    stored = {f"write:{each.tag}" for each in workload.operations if each.word == "mmapwrite"}
    return tuple(segment for segment in within if segment.source in stored)


def _sizes(entries: list[Entry]) -> list[int]:
    return [entry.size for entry in entries]


def _runs(entries: list[Entry], wanted: Segments) -> tuple[Run, ...]:
    """Where the bytes of `wanted` may come from, if a crash may show any of `entries` or a mixture.

    A run that some later state changes may show any of its states. Where one of them is a hole or past the end, a block
    may have been allocated and not been written, so zero and stale bytes are no broken promise; nor are they in zero
    bytes that share a block with a changed run.
    """
    changed = _changed_blocks(entries)
    edges = {edge for run in changed for edge in run} | _edges(wanted).union(*(_edges(e.segments) for e in entries))
    runs = []
    for start, end in pairwise(sorted(edges)):
        if clipped(wanted, start, end):
            allowed = _sources_of(entries, start, end)
            is_changed = any(first < end and start < last for first, last in changed)
            if is_changed and allowed & {ZERO, None}:
                allowed |= {ZERO, "stale"}
            runs.append(Run(start, end, frozenset(source for source in allowed if source is not None)))
    return _joined(runs)


def _changed_blocks(entries: list[Entry]) -> list[tuple[int, int]]:
    """The ranges in which `entries` differ, grown to whole blocks."""
    pieces = pairwise(sorted(frozenset[int]().union(*(_edges(entry.segments) for entry in entries))))
    changed = [(start, end) for start, end in pieces if len(_sources_of(entries, start, end)) > 1]
    return [(start - start % BLOCK_BYTES, end + -end % BLOCK_BYTES) for start, end in changed]


def _edges(segments: Segments) -> frozenset[int]:
    return frozenset(edge for segment in segments for edge in (segment.start, segment.end))


def _sources_of(entries: list[Entry], start: int, end: int) -> frozenset[str | None]:
    return frozenset[str | None]().union(*(sources(entry, start, end) for entry in entries))


def _joined(runs: list[Run]) -> tuple[Run, ...]:
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].end == run.start and joined[-1].sources == run.sources:
            run = Run(joined.pop().start, run.end, run.sources)
        joined.append(run)
    return tuple(joined)


def _attributes(said: str, entries: list[Entry], former: set[str]) -> Iterator[Attribute]:
    """Of each attribute that the inode has, may have or had: what it may be now."""
    states = [dict(entry.xattrs) for entry in entries]
    for name in sorted(former.union(*states)):
        yield Attribute(entries[0].path, said, name, frozenset(state.get(name) for state in states))
