"""Three kinds of properties: atomicity, order and durability of selected operations.

All three depend on what operations change (`changes.py`). An operation is *visible* if something that it changes does
not show its old state. It is *whole* if everything that it changes shows its new state.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from postcrash.model import History, Naming, Observation, Persistence, Tree, Workload
from postcrash.model.history import trees_of
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.model.tree import is_one_folder, parent
from postcrash.properties.effects import Effect, EffectState, OfFile, effects
from postcrash.properties.family import Row, family
from postcrash.properties.property import Property
from postcrash.properties.selection import ALL, OperationGroup, Selector, file_of, operations
from postcrash.properties.wording import operation_at

SHARED_EFFECTS = "What other recorded operations change too: a name, size or byte that two of them set."


@dataclass(frozen=True, slots=True)
class PropertyBase(Property):
    """The texts and the workloads of a property."""

    name: str
    title: str
    statement: str
    source: str
    rows: tuple[Row, ...]
    exclusions: tuple[str, ...] = (SHARED_EFFECTS,)

    def workloads(self) -> tuple[Workload, ...]:
        """See `Property`."""
        return family(*self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomic(PropertyBase):
    """After a crash, `selected` operations have changed either nothing or everything that they change."""

    selected: Selector

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if an operation is visible."""
        tree = observation.tree
        relevant = False
        for group in _started(self.selected, history):
            seen = _decided(effects(history, *group), tree)
            if set(seen.values()) <= {EffectState.OLD}:
                continue
            relevant = True
            if set(seen.values()) != {EffectState.NEW}:
                return _broken(history, tree, f"{_named(history, group)} is there in part:", _undone(seen))
        return holds("what is visible is whole") if relevant else UNTESTED


EVERY_OPERATION = operations(*ALL)
"""All words that change the tree."""
Relation = Callable[[Workload, OperationGroup, int], bool]
"""A relation between an earlier group and a later operation."""


def any_later(workload: Workload, first: OperationGroup, later: int) -> bool:
    """Holds whatever the later operation concerns."""
    return True


def same_file(workload: Workload, first: OperationGroup, later: int) -> bool:
    """The later operation concerns the same file, by whatever name."""
    return file_of(workload, first[-1]) == file_of(workload, later)


def other_file(workload: Workload, first: OperationGroup, later: int) -> bool:
    """The later operation concerns another file."""
    return not same_file(workload, first, later)


def other_directory(workload: Workload, first: OperationGroup, later: int) -> bool:
    """The later operation changes no name in a directory in which the first one changes one."""
    return not _directories(workload, first[-1]) & _directories(workload, later)


def _directories(workload: Workload, index: int) -> set[int]:
    """The directories in which the operation changes names. A link takes nothing from where the file is."""
    operation, tree = workload.operations[index], trees_of(workload)[index]
    match operation.form.naming:
        case Naming.LINK:
            paths = [operation.to]
        case Naming.MOVE:
            paths = [operation.path, operation.to]
        case _:
            paths = [operation.path]
    return {tree[parent(path)].inode for path in paths}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(PropertyBase):
    """If an operation of `later` is visible, those of `selected` before it and in this `relation` to it are whole.

    With `is_named`, the later operation gives a name, which must be there.
    """

    selected: Selector
    later: Selector = EVERY_OPERATION
    relation: Relation = any_later
    is_named: bool = False

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if an operation is visible and there are others before it."""
        tree = observation.tree
        is_visible = cache(lambda index: self._is_visible(history, index, tree))
        relevant = False
        for group, laters in _related(self, history.workload):
            if group[-1] >= history.started:
                continue
            promised = effects(history, *group)
            index = next(
                (index for index in laters if promised and index < history.started and is_visible(index)), None
            )
            if index is None:
                continue
            relevant = True
            undone = _undone(_decided(promised, tree))
            if undone:
                later, first = operation_at(history.workload, index), _named(history, group)
                prefix = f"{later} is visible, but not whole is {first} before it:"
                return _broken(history, tree, prefix, undone)
        return holds("what came before is there") if relevant else UNTESTED

    def _is_visible(self, history: History, index: int, tree: Tree) -> bool:
        is_there = not self.is_named or history.workload.operations[index].to in tree
        return is_there and _is_visible(history, index, tree)


@lru_cache(maxsize=512)
def _related(ordered: Ordered, workload: Workload) -> tuple[tuple[OperationGroup, tuple[int, ...]], ...]:
    """Each group that is selected, with the later operations in relation to it."""
    laters = [index for (index,) in _selected(ordered.later, workload)]
    return tuple(
        (group, tuple(index for index in laters if index > group[-1] and ordered.relation(workload, group, index)))
        for group in _selected(ordered.selected, workload)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable(PropertyBase):
    """Once an operation called one of `barriers` has returned, what it `covers` of `selected` operations is there.

    If there are no barriers, each operation is its own barrier. `of` says whether a barrier concerns a directory, or
    something that is none; empty for either. If all names of a file are missing, its contents are not judged: names
    have rows of their own.
    """

    selected: Selector
    barriers: tuple[str, ...] = ()
    of: Literal["", "dir", "file"] = ""

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if a barrier had returned that covers an effect."""
        tree = observation.tree
        relevant = False
        for barrier, group in self._covered(history):
            covered = [c for c in effects(history, *group) if not self.barriers or covers(history, barrier, c)]
            promised = _decided([c for c in covered if not isinstance(c, OfFile) or c.has_name(tree)], tree)
            relevant = relevant or bool(promised)
            undone = _undone(promised)
            if undone:
                after = f" after {_named(history, group)}" if self.barriers else ""
                prefix = f"{operation_at(history.workload, barrier)}{after} had returned, but"
                return _broken(history, tree, prefix, undone)
        return holds("what was promised is there") if relevant else UNTESTED

    def _covered(self, history: History) -> Iterator[tuple[int, OperationGroup]]:
        """Barriers that had returned, each with the operations before it."""
        done = [group for group in _started(self.selected, history) if group[-1] < history.returned]
        if not self.barriers:
            yield from ((group[-1], group) for group in done)
        for index in range(len(history.workload.setup), history.returned):
            if history.workload.operations[index].word in self.barriers and self._is_meant(history, index):
                yield from ((index, group) for group in done if group[-1] < index)

    def _is_meant(self, history: History, barrier: int) -> bool:
        """Whether the barrier concerns what the property says."""
        path = history.workload.operations[barrier].path
        return not self.of or (history.trees[barrier][path].type == "dir") == (self.of == "dir")


def covers(history: History, barrier: int, effect: Effect) -> bool:
    """Whether the operation at `barrier` covers everything, the file of `effect`, or the directory of its name.

    A directory does not include what is in a file: neither how many names it has, nor what it holds. Only what covers
    everything covers a name in a directory that moves, or below one: the name may be where the directory was.
    """
    operation = history.workload.operations[barrier]
    if operation.form.persistence is Persistence.EVERYTHING:
        return True
    entry = history.trees[barrier][operation.path]
    if not isinstance(effect, OfFile) and not _keeps_its_place(history.workload, history.started, effect.path):
        return False
    if entry.type == "dir":
        return not isinstance(effect, OfFile) and entry.path == parent(effect.path)
    return entry.inode == effect.inode


@lru_cache(maxsize=4096)
def _keeps_its_place(workload: Workload, started: int, path: str) -> bool:
    """Whether each directory above the path is one directory, with this path only, from the end of the set-up on."""
    trees = History(workload, started, started).trees[len(workload.setup) : started + 1]
    return all(is_one_folder(trees, path[:place]) for place, letter in enumerate(path) if letter == "/")


def _started(selector: Selector, history: History) -> tuple[OperationGroup, ...]:
    return tuple(group for group in _selected(selector, history.workload) if group[-1] < history.started)


@lru_cache(maxsize=4096)
def _selected(selector: Selector, workload: Workload) -> tuple[OperationGroup, ...]:
    return selector(workload)


def _is_visible(history: History, index: int, tree: Tree) -> bool:
    return any(shown is not EffectState.OLD for shown in _decided(effects(history, index), tree).values())


def _decided(concerned: Iterable[Effect], tree: Tree) -> dict[Effect, EffectState]:
    """What the tree shows of each effect, without those of which it cannot be prefix."""
    shown = {effect: effect.shown(tree) for effect in concerned}
    return {effect: state for effect, state in shown.items() if state is not EffectState.UNKNOWN}


def _undone(seen: dict[Effect, EffectState]) -> Effect | None:
    return next((effect for effect, shown in seen.items() if shown is not EffectState.NEW), None)


def _named(history: History, group: OperationGroup) -> str:
    return " and ".join(operation_at(history.workload, index) for index in group)


def _broken(history: History, tree: Tree, prefix: str, undone: Effect | None) -> Opinion:
    assert undone is not None
    return violated(f"{prefix} {undone.found(history.workload, tree)}")
