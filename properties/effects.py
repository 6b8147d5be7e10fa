"""Finds what an operation changes, its effects, and whether a tree shows them.

An effect concerns one thing: a name, which file a name stands for, a stretch of a file, its size, its links, or an
attribute. The thing is different after an operation than before it, and no other recorded operation changes it. So an
effect is never mistaken for the work of another operation, and no later operation can undo it. Several operations can
be taken as one, such as a truncation and the append that follows it.
"""

from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

from postcrash.model import Entry, EntryType, History, Tree, Workload, all_from, any_from, source_at
from postcrash.properties.wording import shown_bytes

_Names = tuple[str, ...]


class EffectState(Enum):
    """What a tree shows of an effect."""

    OLD = "as before"
    NEW = "done"
    OTHER = "neither"
    UNKNOWN = "cannot be told"


class Effect(Protocol):
    """One thing that differs before and after an operation. `inode` is the simulated file's."""

    @property
    def path(self) -> str:
        """The name that the effect concerns."""
        ...

    @property
    def inode(self) -> int:
        """The file that the effect concerns, as numbered in the history's trees."""
        ...

    def shown(self, tree: Tree) -> EffectState:
        """What `tree` shows of the effect. If the file is missing, nothing of the effect shows: OLD.

        UNKNOWN if what is there may be another file.
        """
        ...

    def found(self, workload: Workload, tree: Tree) -> str:
        """What `tree` has there, in words."""
        ...


@dataclass(frozen=True, slots=True)
class NameEffect:
    """`entry` got its name (`is_there`) or lost it. Later operations may put something else there: `others`."""

    entry: Entry
    is_there: bool
    others: tuple[Entry, ...] = ()

    @property
    def path(self) -> str:
        """See `Effect`."""
        return self.entry.path

    @property
    def inode(self) -> int:
        """See `Effect`."""
        return self.entry.inode

    def shown(self, tree: Tree) -> EffectState:
        """A new name of another type, or a symbolic link that points elsewhere, is neither old nor new."""
        found = tree.get(self.path)
        if found is None:
            return EffectState.OLD if self.is_there else EffectState.NEW
        if not self.is_there:
            return EffectState.OLD
        kinds = {(entry.type, entry.target) for entry in (self.entry, *self.others)}
        is_right = not found.error and (found.type, found.target) in kinds
        return EffectState.NEW if is_right else EffectState.OTHER

    def found(self, workload: Workload, tree: Tree) -> str:
        """See `Effect`."""
        entry = tree.get(self.path)
        if entry is None:
            return f"{self.path} is not there"
        target = f" to {entry.target!r}" if entry.type == "symlink" else ""
        return f"{self.path} is there, a {entry.type}{target}" + (f", errno {entry.error}" if entry.error else "")


@dataclass(frozen=True, slots=True)
class FileEffect:
    """The name means file `new` in place of file `old`.

    is_settled         no other operation changes their contents
    of_old, of_new     sources of bytes that only one of the two ever has
    is_old_recognised  the old file has such a byte at a place from which no operation takes it
    """

    old: Entry
    new: Entry
    is_settled: bool
    of_old: frozenset[str]
    of_new: frozenset[str]
    is_old_recognised: bool

    @property
    def path(self) -> str:
        """See `Effect`."""
        return self.new.path

    @property
    def inode(self) -> int:
        """See `Effect`."""
        return self.new.inode

    def shown(self, tree: Tree) -> EffectState:
        """A missing name is neither. If the files are still being written, a byte that only one has tells which it is.

        A file without such a byte is the new one if the old one always has one (`is_old_recognised`). Otherwise nobody
        can tell: UNKNOWN.
        """
        found = tree.get(self.path)
        if found is None or found.error:
            return EffectState.OTHER
        if not self.is_settled:
            if any_from(found, self.of_old):
                return EffectState.OLD
            is_new = self.is_old_recognised or any_from(found, self.of_new)
            return EffectState.NEW if is_new else EffectState.UNKNOWN
        if _is_like(found, self.new):
            return EffectState.NEW
        return EffectState.OLD if _is_like(found, self.old) else EffectState.OTHER

    def found(self, workload: Workload, tree: Tree) -> str:
        """See `Effect`."""
        return shown_bytes(workload, self.path, tree.get(self.path), 0, max(self.old.size, self.new.size))


@dataclass(frozen=True, slots=True)
class OfFile:
    """An effect on what is behind a name. The file's `names` may be another file's at another time; `own` never are."""

    path: str
    inode: int
    names: _Names
    own: _Names

    def has_name(self, tree: Tree) -> bool:
        """Whether the file can be found at all."""
        return any(name in tree for name in self.names)

    def own_entries(self, tree: Tree) -> list[Entry]:
        """The file, under each name that can only be this file's."""
        return [tree[name] for name in self.own if name in tree]

    def _of(self, found: set[object], old: object, new: object, tree: Tree) -> EffectState:
        """What the values that own names show say of the effect. Another name may be another file's."""
        if not found and self.has_name(tree):
            return EffectState.UNKNOWN
        if found <= {old}:
            return EffectState.OLD
        return EffectState.NEW if found == {new} else EffectState.OTHER


@dataclass(frozen=True, slots=True)
class BytesEffect(OfFile):
    """The bytes from `start` up to `end` come from `new` in place of `old`. None is a byte past the end.

    If bytes of `new` were written, `identifying` are the names under which no other file ever has such bytes. `others`
    are names with the type and size of another file that ever has the name.
    """

    identifying: _Names
    others: frozenset[tuple[str, EntryType, int]]
    start: int
    end: int
    old: str | None
    new: str | None

    def shown(self, tree: Tree) -> EffectState:
        """Bytes of a write are recognised under identifying names, others under names that can be no other file's."""
        if self.new is not None and self.identifying:
            holders = [tree[name] for name in self.identifying if name in tree and any_from(tree[name], {self.new})]
            if holders:
                return EffectState.NEW if any(self._all(entry, self.new) for entry in holders) else EffectState.OTHER
        entries = self.own_entries(tree)
        if not entries and any(self._can_be_another(tree[name]) for name in self.names if name in tree):
            return EffectState.UNKNOWN
        if all(self._all(entry, self.old) for entry in entries):
            return EffectState.OLD
        return EffectState.NEW if all(self._all(entry, self.new) for entry in entries) else EffectState.OTHER

    def _can_be_another(self, entry: Entry) -> bool:
        """Whether the entry, which has no byte of `new` under a identifying name, can be another file."""
        return entry.path not in self.identifying or (entry.path, entry.type, entry.size) in self.others

    def _all(self, entry: Entry, source: str | None) -> bool:
        if entry.type != "file" or entry.error:
            return False
        if source is None:
            return entry.size <= self.start
        return all_from(entry, self.start, self.end, {source})

    def found(self, workload: Workload, tree: Tree) -> str:
        """See `Effect`."""
        path = next((name for name in self.names if name in tree), self.path)
        return shown_bytes(workload, path, tree.get(path), self.start, self.end)


@dataclass(frozen=True, slots=True)
class FieldEffect(OfFile):
    """The size or the number of links is `new` in place of `old`."""

    field: str
    old: int | None
    new: int | None

    def shown(self, tree: Tree) -> EffectState:
        """See `Effect`."""
        return self._of({getattr(entry, self.field) for entry in self.own_entries(tree)}, self.old, self.new, tree)

    def found(self, workload: Workload, tree: Tree) -> str:
        """See `Effect`."""
        shown = sorted({str(getattr(entry, self.field)) for entry in self.own_entries(tree)})
        return f"{self.field} of {self.path} is {' and '.join(shown) or 'not there'}"


@dataclass(frozen=True, slots=True)
class AttributeEffect(OfFile):
    """The attribute `name` is `new` in place of `old`, in hexadecimal. None means that there is no attribute."""

    name: str
    old: str | None
    new: str | None

    def shown(self, tree: Tree) -> EffectState:
        """See `Effect`."""
        return self._of(
            {dict(entry.xattrs).get(self.name) for entry in self.own_entries(tree)}, self.old, self.new, tree
        )

    def found(self, workload: Workload, tree: Tree) -> str:
        """See `Effect`."""
        values = sorted({str(dict(entry.xattrs).get(self.name)) for entry in self.own_entries(tree)})
        return f"{self.name} of {self.path} is {' and '.join(values) or 'not there'}"


def _is_like(found: Entry, meant: Entry) -> bool:
    if meant.type == "dir":
        return found.type == "dir"
    if (found.type, found.target, found.size) != (meant.type, meant.target, meant.size):
        return False
    return all(all_from(found, run.start, run.end, {run.source}) for run in meant.segments)


def sources_of_writes(entry: Entry) -> frozenset[str]:
    """The sources of the bytes that writes put into the file."""
    return frozenset(segment.source for segment in entry.segments if segment.source.startswith("write:"))


def _is_kept(states: Collection[Entry], sources: frozenset[str]) -> bool:
    """Whether there is a place at which each of the states has a byte of these sources.

    Then such a byte is there, whichever of the states a crash leaves.
    """
    places = {segment.start for state in states for segment in state.segments}
    return any(all(source_at(state, place) in sources for state in states) for place in places)


# Finding the effects


def effects(history: History, *operations: int) -> tuple[Effect, ...]:
    """The effects that the recorded `operations`, taken as one, have and no other operation has. All have started."""
    return _effects(history.workload, history.started, frozenset(operations))


@lru_cache(maxsize=4096)
def _effects(workload: Workload, started: int, group: frozenset[int]) -> tuple[Effect, ...]:
    return _effects_among(workload, _near(workload, started, group), group)


@lru_cache(maxsize=4096)
def _effects_among(workload: Workload, near: frozenset[int], group: frozenset[int]) -> tuple[Effect, ...]:
    """The effects, found among `near` of `_near`. Later operations that are not near make no difference."""
    trees = History(workload, 0, 0).trees
    kept = sorted({len(workload.setup), *near, *(index + 1 for index in near)})
    return tuple(_Finder(tuple(trees[count] for count in kept), frozenset(map(kept.index, group))).find())


def _near(workload: Workload, started: int, group: frozenset[int]) -> frozenset[int]:
    """The operations of `group`, and the started ones that have to do with what these change.

    They change the same paths or inodes, or those of an operation that does. No other operation makes a difference to
    the effects of the group, so the trees between can be left out: a workload may have hundreds.
    """
    touches, near = _touches(workload), set[int]()
    paths, inodes = set[str](), set[int]()
    found = {*group}
    while found:
        near |= found
        for index in found:
            paths |= touches[index].paths
            inodes |= touches[index].inodes
        others = (index for index in range(len(workload.setup), started) if index not in near)
        found = {index for index in others if touches[index].meets(paths, inodes)}
    return frozenset(near)


class _Touch(NamedTuple):
    """The paths and inodes of the entries that an operation changes. Files that only a handle holds count too."""

    paths: frozenset[str]
    inodes: frozenset[int]

    def meets(self, paths: Set[str], inodes: Set[int]) -> bool:
        """Whether it changes one of these."""
        return not (self.paths.isdisjoint(paths) and self.inodes.isdisjoint(inodes))


@lru_cache(maxsize=256)
def _touches(workload: Workload) -> tuple[_Touch, ...]:
    """What each operation changes, the set-up's included."""
    return tuple(_touch(before, after) for before, after in pairwise(History(workload, 0, 0).trees))


def _touch(before: Tree, after: Tree) -> _Touch:
    entries = [*_differing(before, after)]
    held = {entry for _, entry in before.held.items() ^ after.held.items()}
    return _Touch(frozenset(entry.path for entry in entries), frozenset(entry.inode for entry in {*entries, *held}))


def _differing(before: Tree, after: Tree) -> Iterator[Entry]:
    """The entries that only one of the trees has, or that are not the same in both."""
    for path in before.places(after):
        old, new = before.get(path), after.get(path)
        if old is not new and old != new:
            yield from (entry for entry in (old, new) if entry is not None)


class _Finder:
    """`trees` are the one before the first recorded operation and those after each. `group` counts them from 0."""

    def __init__(self, trees: tuple[Tree, ...], group: frozenset[int]) -> None:
        self._trees = trees
        self._group = group

    def find(self) -> Iterator[Effect]:
        """All effects: names first, then what files hold. What shows no difference in the group is not looked at."""
        touched = {entry for index in self._group for entry in _differing(*self._trees[index : index + 2])}
        for path in sorted({entry.path for entry in touched}):
            yield from self._of_name(path)
        for inode in sorted({entry.inode for entry in touched}):
            yield from self._of_file(inode)

    def _is_changed(self, values: list[object]) -> bool:
        """Whether a thing that has these values in the trees is changed by the group, and by no other operation."""
        places = {place for place, (before, after) in enumerate(pairwise(values)) if before != after}
        return bool(places) and places <= self._group and values[0] != values[-1]

    def _of_name(self, path: str) -> Iterator[Effect]:
        entries = [tree.get(path) for tree in self._trees]
        first, last = entries[0], entries[-1]
        if self._is_changed([entry is not None for entry in entries]):
            entry = last or first
            assert entry is not None
            others = dict.fromkeys(each for each in entries if each and each.inode != entry.inode)
            yield NameEffect(entry, last is not None, tuple(others))
        elif first is not None and last is not None and self._is_changed([e and e.inode for e in entries]):
            is_settled = self._is_still(first.inode) and self._is_still(last.inode)
            old, new = self._written(first.inode), self._written(last.inode)
            differ = not _is_like(last, first) if is_settled else bool(old - new)
            if differ and not first.type == last.type == "dir":
                is_old_recognised = _is_kept(self._ever(first.inode), old - new)
                yield FileEffect(first, last, is_settled, old - new, new - old, is_old_recognised)

    def _is_still(self, inode: int) -> bool:
        return len({entry.segments for entry in self._ever(inode)}) == 1

    def _written(self, inode: int) -> frozenset[str]:
        """The sources of all bytes that the file ever has from writes."""
        return frozenset[str]().union(*map(sources_of_writes, self._ever(inode)))

    def _ever(self, inode: int) -> set[Entry]:
        """The file in all its states, also those without a name, in which a handle holds it."""
        held = {entry for tree in self._trees for entry in tree.held.values() if entry.inode == inode}
        return held | {entry for entry in self._states(inode) if entry}

    def _states(self, inode: int) -> list[Entry | None]:
        found = [tree.names(inode) for tree in self._trees]
        return [tree[names[0]] if names else None for tree, names in zip(self._trees, found, strict=True)]

    def _of_file(self, inode: int) -> Iterator[Effect]:
        states = self._states(inode)
        last = states[-1]
        if last is None or last.type != "file":
            return
        names = tuple(sorted({name for tree in self._trees for name in tree.names(inode)}))
        foreign = {name: self._foreign(name, inode) for name in names}
        own = tuple(name for name in names if foreign[name] is None)
        others = self._others(names, inode)
        for stretch in self._stretches(states):
            is_written = (stretch[-1] or "").startswith("write:")
            identifying = tuple(name for name in names if is_written and stretch[-1] not in (foreign[name] or ()))
            if own or identifying:
                yield BytesEffect(last.path, inode, names, own, identifying, others, *stretch)
        if not own:
            return
        if states[0] is None:
            nlink = next(entry.nlink for entry in states if entry)
            states = [entry or Entry(last.path, "file", nlink=nlink) for entry in states]
        for field in ("size", "nlink"):
            values: list[object] = [getattr(entry, field) for entry in states]
            if self._is_changed(values):
                old, new = getattr(states[0], field), getattr(last, field)
                yield FieldEffect(last.path, inode, names, own, field=field, old=old, new=new)
        for name in sorted({name for entry in states if entry for name, _ in entry.xattrs}):
            found = [dict(entry.xattrs if entry else ()).get(name) for entry in states]
            if self._is_changed(list(found)):
                yield AttributeEffect(last.path, inode, names, own, name=name, old=found[0], new=found[-1])

    def _others(self, names: _Names, inode: int) -> frozenset[tuple[str, EntryType, int]]:
        """The names with the type and size of each other file that ever has one of them, in each of its states."""
        others = {(name, tree[name].inode) for name in names for tree in self._trees if name in tree}
        return frozenset(
            (name, entry.type, entry.size) for name, other in others if other != inode for entry in self._ever(other)
        )

    def _foreign(self, name: str, inode: int) -> frozenset[str] | None:
        """The sources of written bytes of all other files that ever have the name. None if there is no such file."""
        others = {tree[name].inode for tree in self._trees if name in tree} - {inode}
        return frozenset[str]().union(*map(self._written, others)) if others else None

    def _stretches(self, states: list[Entry | None]) -> list[tuple[int, int, str | None, str | None]]:
        """The longest runs of bytes that the group changes alike: start, end, and the sources before and after."""
        edges = sorted({edge for entry in states if entry for run in entry.segments for edge in run[:2]})
        runs: list[tuple[int, int, str | None, str | None]] = []
        for start, end in pairwise(edges):
            found = [source_at(entry, start) if entry else None for entry in states]
            if not self._is_changed(list(found)):
                continue
            if runs and runs[-1][1:] == (start, found[0], found[-1]):
                start = runs.pop()[0]
            runs.append((start, end, found[0], found[-1]))
        return runs
