"""The vocabulary for the formulas of properties: a history, and a tree that is not known.

What the tree shows are z3 constants: `there("a")`, `byte("a", 4096)`, … . What the history says is known, so
quantifiers over operations, names and places in files are finite and are written out. The predicates of the properties
share nothing with this module: the tests compare the two (tests/unit/properties/test_formulas.py).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import z3

from postcrash.model import Entry, History, Operation, Tree, runs

Formula: TypeAlias = Any
"""This is a z3.BoolRef, but z3 has no types. A `Number` is a z3.ArithRef."""
Number: TypeAlias = Any
KnownValue = int | str | bool | None

PAST_END = "past the end"
MISSING = "missing"


def forall(things: Iterable[object], says: Callable[..., object]) -> Formula:
    """`says` holds for each of `things`."""
    return z3.And([z3.BoolVal(said) if isinstance(said, bool) else said for said in map(says, things)])


def exists(things: Iterable[object], says: Callable[..., object]) -> Formula:
    """`says` holds for one of `things`."""
    return z3.Or([z3.BoolVal(said) if isinstance(said, bool) else said for said in map(says, things)])


@dataclass(frozen=True)
class Thing:
    """One thing that operations can change: its value after each number of operations, and what the tree shows."""

    path: str
    inode: int
    values: tuple[KnownValue, ...]
    as_before: Formula
    as_after: Formula
    names: tuple[str, ...] = ()
    """For a part of what a file holds: the names under which the file may be found."""
    is_content: bool = False
    """It is in the file: a byte, the size, an attribute, the number of names. Names are in directories."""
    is_told: Formula = field(default_factory=lambda: z3.BoolVal(True))
    """Whether the tree tells anything of the thing. If not, what has one of the names may be another file."""

    def changers(self, first: int) -> frozenset[int]:
        """The operations that change the thing. `values` begin before operation `first`."""
        return frozenset(first + place for place, (old, new) in enumerate(pairwise(self.values)) if old != new)


class World:
    """A history, and the tree that a crash left. Nothing is known of the tree."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.first = len(history.workload.setup)
        self.operations = range(self.first, history.started)
        """The recorded operations that had started."""
        self.trees = history.trees[self.first : history.started + 1]
        self.paths = sorted({path for tree in self.trees for path in tree})
        self._edges = sorted({edge for tree in self.trees for entry in tree.values() for edge in _edges(entry)})
        self._asked: dict[tuple[str, str, KnownValue], Number] = {}
        self._codes: dict[KnownValue, int] = {}
        self._things = [*self._names(), *self._meanings(), *self._contents()]

    # What the tree shows

    def there(self, path: str) -> Formula:
        """There is something of that name."""
        return self.shows("type", path) != self.code(MISSING)

    def is_file(self, path: str) -> Formula:
        """The name is a file that can be read."""
        return self.shows("type", path) == self.code("file")

    def byte(self, path: str, offset: int) -> Number:
        """Where the byte at `offset` comes from."""
        return self.shows("byte", path, offset)

    def size(self, path: str) -> Number:
        """The size of a file in bytes."""
        return self._constant("size", path, None)

    def shows(self, aspect: str, path: str, detail: KnownValue = None) -> Number:
        """The code of what the tree shows of this aspect."""
        return self._constant(aspect, path, detail)

    def code(self, value: KnownValue) -> Number:
        """A number that stands for a value that is not a number."""
        return z3.IntVal(self._codes.setdefault(value, len(self._codes)))

    def _constant(self, aspect: str, path: str, detail: KnownValue) -> Number:
        return self._asked.setdefault((aspect, path, detail), z3.Int(f"{aspect} {path} {detail}"))

    def holds(self, formula: Formula, tree: Tree) -> bool:
        """Whether `formula` is true of `tree`."""
        solver = z3.Solver()
        solver.add(z3.Not(formula))
        for (aspect, path, detail), constant in self._asked.items():
            value = _seen(tree.get(path), aspect, detail)
            solver.add(constant == (z3.IntVal(value) if aspect == "size" else self.code(value)))
        return bool(solver.check() == z3.unsat)

    # What the history says

    def operation(self, index: int) -> Operation:
        """The operation with this number."""
        return self.history.workload.operations[index]

    def before(self, index: int) -> Tree:
        """The tree before the operation."""
        return self.history.trees[index]

    def after(self, index: int) -> Tree:
        """The tree after the operation."""
        return self.history.trees[index + 1]

    def source(self, index: int) -> str:
        """The source of the bytes that the operation writes."""
        return f"write:{self.operation(index).tag}"

    def returned(self, index: int) -> bool:
        """Whether the operation had returned."""
        return index < self.history.returned

    def places(self, start: int, end: int) -> list[int]:
        """One byte in each stretch from `start` up to `end`; no file of the history has an edge within a stretch."""
        return sorted({start, *(edge for edge in self._edges if start < edge < end)}) if start < end else []

    def known_byte(self, tree: Tree, path: str, offset: int) -> KnownValue:
        """Where the byte at `offset` comes from in a tree of the history."""
        return _seen(tree.get(path), "byte", offset)

    # What operations change

    def of(self, *group: int) -> list[Thing]:
        """The things that only operations of `group` change and that differ in the end from what they were."""
        things = [thing for thing in self._things if thing.values[0] != thing.values[-1]]
        return [thing for thing in things if thing.changers(self.first) and thing.changers(self.first) <= set(group)]

    def whole(self, *group: int) -> Formula:
        """Everything that the operations change shows its new state."""
        return forall(self.of(*group), lambda thing: z3.Implies(thing.is_told, thing.as_after))

    def untouched(self, *group: int) -> Formula:
        """Nothing that the operations change shows its new state."""
        return forall(self.of(*group), lambda thing: z3.Implies(thing.is_told, thing.as_before))

    def visible(self, *group: int) -> Formula:
        """Something that the operations change shows its new state."""
        return z3.Not(self.untouched(*group))

    def _names(self) -> Iterable[Thing]:
        for path in self.paths:
            entries = [tree.get(path) for tree in self.trees]
            last = next(entry for entry in reversed(entries) if entry)
            is_right = exists([entry for entry in entries if entry], partial(self._is_of_kind, path))
            there, missing = self.there(path), z3.Not(self.there(path))
            old, new = (missing, is_right) if entries[0] is None else (there, missing)
            yield Thing(path, last.inode, tuple(entry is not None for entry in entries), old, new)

    def _is_of_kind(self, path: str, entry: Entry) -> Formula:
        return z3.And(
            self.shows("type", path) == self.code(entry.type), self.shows("target", path) == self.code(entry.target)
        )

    def _meanings(self) -> Iterable[Thing]:
        for path in self.paths:
            entries = [tree.get(path) for tree in self.trees]
            kept = [entry for entry in entries if entry is not None]
            old, new, is_told = kept[0], kept[-1], z3.BoolVal(True)
            if len(kept) < len(entries) or old.type == new.type == "dir":
                continue
            if self._is_still(old.inode) and self._is_still(new.inode):
                if (old.type, old.target, old.segments) == (new.type, new.target, new.segments):
                    continue
                shows_old, shows_new = self._is_like(path, old), self._is_like(path, new)
            else:
                of_old = self._given(old.inode) - self._given(new.inode)
                of_new = self._given(new.inode) - self._given(old.inode)
                if not of_old:
                    continue
                shows_old = z3.And(self.there(path), self._has(path, of_old))
                shows_new = z3.And(self.there(path), z3.Not(shows_old))
                if not self._keeps(old.inode, of_old):
                    is_told = z3.Or(z3.Not(self.there(path)), shows_old, self._has(path, of_new))
            inodes = tuple(entry.inode for entry in kept)
            yield Thing(path, new.inode, inodes, shows_old, shows_new, is_told=is_told)

    def _ever(self, inode: int) -> list[Entry]:
        """What the file is at any time, whether it has a name or only a handle."""
        found = [entry for tree in self.trees for entry in (*tree.values(), *tree.held.values())]
        return [entry for entry in found if entry.inode == inode]

    def _keeps(self, inode: int, sources: set[str]) -> bool:
        """At some place, the file has a byte of one of these sources at any time."""
        states = self._ever(inode)
        return any(all(_seen(state, "byte", place) in sources for state in states) for place in self._edges)

    def _given(self, inode: int) -> set[str]:
        """The writes of which the file ever has a byte."""
        found = {run.source for entry in self._ever(inode) for run in entry.segments}
        return {source for source in found if source.startswith("write:")}

    def _has(self, path: str, sources: set[str]) -> Formula:
        """The name has a byte of one of these sources."""
        length = max(self._edges, default=0)
        return exists(self.places(0, length), lambda x: exists(sources, lambda source: self._is(path, source)(x)))

    def _is(self, path: str, source: str) -> Callable[[int], Formula]:
        return lambda place: self.byte(path, place) == self.code(source)

    def _is_like(self, path: str, entry: Entry) -> Formula:
        if entry.type == "dir":
            return self.shows("type", path) == self.code("dir")
        return z3.And(
            self.shows("type", path) == self.code(entry.type),
            self.shows("target", path) == self.code(entry.target),
            self.size(path) == entry.size,
            *(forall(self.places(r.start, r.end), self._is(path, r.source)) for r in entry.segments),
        )

    def _is_still(self, inode: int) -> bool:
        return len({entry.segments for entry in self._ever(inode)}) == 1

    def _contents(self) -> Iterable[Thing]:
        for inode in sorted({entry.inode for tree in self.trees for entry in tree.values() if entry.type == "file"}):
            names = [path for path in self.paths if any(path in t and t[path].inode == inode for t in self.trees)]
            own = [path for path in names if all(path not in t or t[path].inode == inode for t in self.trees)]
            states = [next((e for e in tree.values() if e.inode == inode), None) for tree in self.trees]
            last = states[-1]
            if last is None:
                continue
            for place in self._edges:
                yield self._byte(last, place, names, own, states)
            if own:
                yield from self._fields(last, names, own, states)

    def _byte(self, last: Entry, place: int, names: list[str], own: list[str], states: list[Entry | None]) -> Thing:
        """One byte. It is recognised by the write that it comes from, or by a name that is no other file's.

        The write tells nothing under a name that another file has, if that file ever has bytes of the same write.
        """
        values = tuple(_seen(state, "byte", place) for state in states)
        as_before = self._own(own, "byte", place, values[0])
        found = exists(own, self.there)
        as_after = z3.And(found, self._own(own, "byte", place, values[-1]))
        telling: list[str] = []
        source = str(values[-1])
        if source.startswith("write:"):
            telling = [name for name in names if not self._is_given_elsewhere(name, last.inode, source)]
            as_after = exists(telling, lambda name: self.byte(name, place) == self.code(source))
            as_before = z3.And(as_before, z3.Not(as_after))
            found = z3.Or(found, exists(telling, lambda name: self._has(name, {source})))
        if not own and not telling:
            values = values[:1] * len(values)
        hidden = exists([name for name in names if name not in telling], self.there)
        hidden = z3.Or(hidden, exists(telling, lambda name: self._is_another(name, last.inode)))
        is_told = z3.Or(found, z3.Not(hidden))
        return Thing(
            last.path, last.inode, values, as_before, as_after, names=tuple(names), is_content=True, is_told=is_told
        )

    def _is_another(self, name: str, inode: int) -> Formula:
        """What has the name is of the type and size of another file that ever has the name."""
        others = {tree[name].inode for tree in self.trees if name in tree} - {inode}
        states = {(entry.type, entry.size) for other in others for entry in self._ever(other)}
        return exists(
            states,
            lambda state: z3.And(
                self.shows("type", name) == self.code(state[0]), self.there(name), self.size(name) == state[1]
            ),
        )

    def _is_given_elsewhere(self, name: str, inode: int, source: str) -> bool:
        """Another file that ever has the name ever has bytes of the write."""
        others = {tree[name].inode for tree in self.trees if name in tree} - {inode}
        return any(source in self._given(other) for other in others)

    def _fields(self, last: Entry, names: list[str], own: list[str], states: list[Entry | None]) -> Iterable[Thing]:
        blank = Entry(last.path, "file", nlink=next(state.nlink for state in states if state))
        entries = [state or blank for state in states] if states[0] is None else states
        attributes = sorted({name for state in states if state for name, _ in state.xattrs})
        for aspect, detail in [("size", None), ("nlink", None), *(("xattr", name) for name in attributes)]:
            values = tuple(_seen(entry, aspect, detail) for entry in (states if aspect == "xattr" else entries))
            before, after = (self._own(own, aspect, detail, value) for value in (values[0], values[-1]))
            found = exists(own, self.there)
            is_told = z3.Or(found, z3.Not(exists(names, self.there)))
            yield Thing(
                last.path,
                last.inode,
                values,
                as_before=before,
                as_after=z3.And(found, after),
                names=tuple(names),
                is_content=True,
                is_told=is_told,
            )

    def _own(self, own: list[str], aspect: str, detail: KnownValue, value: KnownValue) -> Formula:
        """Under every existing name that is only this file's, the tree shows `value`."""

        def says(path: str) -> Formula:
            shown = self._constant(aspect, path, detail)
            return z3.Implies(self.there(path), shown == (int(value or 0) if aspect == "size" else self.code(value)))

        return forall(own, says)


def _edges(entry: Entry | None) -> set[int]:
    return {edge for run in entry.segments for edge in run[:2]} if entry else set()


def _seen(entry: Entry | None, aspect: str, detail: KnownValue) -> KnownValue:
    """What an entry shows of this aspect. There may be no entry."""
    if aspect == "type":
        return MISSING if entry is None else entry.type
    if entry is None:
        return PAST_END if aspect == "byte" else 0 if aspect == "size" else None
    if aspect == "byte":
        assert isinstance(detail, int)
        return next((run.source for run in runs(entry, detail, detail + 1)), PAST_END)
    if aspect == "xattr":
        return dict(entry.xattrs).get(str(detail))
    known: KnownValue = {"size": entry.size, "nlink": entry.nlink, "target": entry.target}[aspect]
    return known
