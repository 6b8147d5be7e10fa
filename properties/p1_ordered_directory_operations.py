"""P1, ordered directory operations.

A course says of each directory operation that it is not there, there as a whole, or half there. It leads to the names
that are found. A rename is half there if the new name exists but the old one is not gone, or if the old name is gone
but the new one is missing. P1 is broken if every course with the fewest halves has an operation that is visible after
one that is not wholly there.

A course says which file each name stands for. What is found under a name cannot be a file of another type or target. If
it has bytes of writes, at least one of these writes must have been made to the file. So a file that was removed is not
mistaken for the new file of its name. If this leaves no course, contents are mixed up. P1 does not judge this, and then
only names are compared. By rename(2), a rename between two links of one file does nothing, and so it is always there.

So P1 does not object to an effect that the tree cannot show, such as that of `creat A` once `unlink A` has its effect.
A rename that is half done breaks P1 only if something later is visible. By itself it breaks atomicity, which P1 does
not promise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from postcrash.model import Entry, History, Naming, Observation, Operation, Tree, Workload, any_from
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.model.segments import ZERO
from postcrash.model.tree import is_below, parent
from postcrash.properties.family import D_AND_E, family
from postcrash.properties.property import Property
from postcrash.properties.wording import operation_at

_Names = Mapping[str, int]
"""The inodes that names stand for, as numbered in the history's trees."""
Fits = Callable[[str, int | None], bool]
"""Whether what is found under a name can be this inode. None means that nothing is found."""

_MOVING = (Naming.MOVE, Naming.SWAP)


class OrderedDirectoryOperations(Property):
    """P1 of HotDep'13."""

    name = "P1"
    title = "ordered directory operations"
    statement = (
        "Of a sequence of directory operations, if the tree after a crash contains the effect of one, "
        "it contains the effects of all those before it."
    )
    source = "HotDep'13, section 2 (P1); link, mkdir, rmdir, symlink, mknod and exchange are ours"
    exclusions = (
        "A directory operation that is half done (the paper's property is about order, not atomicity), "
        "unless something later is visible.",
        "An effect that no longer shows, as of a creat whose file was unlinked.",
        "Contents, sizes, link counts and attributes, but for what they tell of which file it is.",
        "What is made in a directory after its move, where the crash left the directory under its old name.",
    )

    def workloads(self) -> tuple[Workload, ...]:
        """Sequences that file systems reorder, with and without a flush of something."""
        return family(*_ROWS)

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if an operation is visible that is not the first one."""
        tree = observation.tree
        indices = _directory_operations(history)
        if not indices:
            return UNTESTED
        steps = [_step(history, index) for index in indices]
        before = _names(history.trees[len(history.workload.setup)])
        touched = _last_touch(steps, frozenset(path for t in history.trees for path in t.paths()))
        by_content = _simplest(steps, before, touched, lambda name, inode: _is_found(history, tree, name, inode))
        course = by_content or _simplest(
            steps, before, touched, lambda name, inode: (name in tree) == (inode is not None)
        )
        if course is None:
            names = ", ".join(sorted(path for path in touched if path in tree)) or "none"
            return violated(f"no choice of the operations explains the names that are there: {names}")
        return _judged(history.workload, indices, course)


def _judged(workload: Workload, indices: Sequence[int], course: "_Course") -> Opinion:
    shown = [place for place, done in enumerate(course.choices) if done is not _Done.NOT]
    relevant = bool(shown) and shown[-1] > 0
    disorder = _disorder(course.choices)
    if disorder is None:
        return holds("in order") if relevant else UNTESTED
    missing, visible = disorder
    message = (
        f"{operation_at(workload, indices[visible])} is visible, "
        f"{operation_at(workload, indices[missing])} before it is {course.choices[missing].value}"
    )
    return violated(message)


def _directory_operations(history: History) -> list[int]:
    operations = history.workload.operations[: history.started]
    first = len(history.workload.setup)
    return [index for index, operation in enumerate(operations) if index >= first and operation.form.naming]


class _Step(NamedTuple):
    """A directory operation. `given`: the inode to which it gives a name if this is new, or an open file's."""

    operation: Operation
    given: int


def _step(history: History, index: int) -> _Step:
    operation = history.workload.operations[index]
    if operation.form.naming is Naming.MAKE:
        return _Step(operation, history.trees[index + 1][operation.path].inode)
    return _Step(operation, history.trees[index][operation.path].inode if operation.is_held else 0)


def _names(tree: Tree) -> _Names:
    return {path: tree[path].inode for path in tree.paths()}


# Telling files apart


@lru_cache(maxsize=256)
def _files(workload: Workload) -> dict[int, tuple[Entry, frozenset[str]]]:
    """One state of each inode, and the sources of all bytes that it ever had."""
    found: dict[int, tuple[Entry, frozenset[str]]] = {}
    for tree in History(workload, 0, 0).trees:
        for entry in (*(tree[path] for path in tree.paths()), *tree.held.values()):
            _, known = found.get(entry.inode, (entry, frozenset[str]()))
            found[entry.inode] = entry, known | {segment.source for segment in entry.segments}
    return found


def _is_found(history: History, tree: Tree, name: str, inode: int | None) -> bool:
    """Whether what `tree` has under the name can be the inode."""
    entry = tree.get(name)
    if entry is None or inode is None:
        return entry is None and inode is None
    if entry.error:
        return True
    files = _files(history.workload)
    meant, own = files[inode]
    if (entry.type, entry.target) != (meant.type, meant.target):
        return False
    written = frozenset[str]().union(*(sources for _, sources in files.values())) - {ZERO}
    return not any_from(entry, written - own)


# Courses


class _Done(Enum):
    """How much of an operation's effect is there."""

    NOT = "not"
    WHOLE = "whole"
    NEW_ONLY = "half done (the old name is still there)"
    OLD_GONE = "half done (the new name is missing)"
    PARTLY = "half done (one of the two names is as before, or missing)"


class _Course(NamedTuple):
    names: _Names
    choices: tuple[_Done, ...]

    @property
    def cost(self) -> tuple[int, bool, int]:
        """The cost of a course. The simpler one has fewer halves, is in order, and has fewer operations."""
        halves = sum(done not in (_Done.NOT, _Done.WHOLE) for done in self.choices)
        visible = sum(done is not _Done.NOT for done in self.choices)
        return halves, _disorder(self.choices) is not None, visible


def _disorder(choices: Sequence[_Done]) -> tuple[int, int] | None:
    """The first operation that is not wholly there, and the first one that is visible after it."""
    missing = next((place for place, done in enumerate(choices) if done is not _Done.WHOLE), len(choices))
    later = (place for place in range(missing + 1, len(choices)) if choices[place] is not _Done.NOT)
    visible = next(later, None)
    return None if visible is None else (missing, visible)


def _simplest(steps: Sequence[_Step], before: _Names, last_touch: dict[str, int], fits: Fits) -> _Course | None:
    """The course with the least cost. None if there is none.

    Among partial courses that can go on in the same ways, only the simplest is kept. A name that no later
    operation touches must be as found. If each name is used once, there is hardly ever more than one left.
    """
    partial = [_Course(before, ())]
    for place, step in enumerate(steps):
        settled = [name for name, last in last_touch.items() if last == place]
        best: dict[tuple[frozenset[tuple[str, int]], bool, bool], _Course] = {}
        for old in partial:
            for done, names in _effects(step, old.names):
                if not all(fits(name, names.get(name)) for name in settled):
                    continue
                new = _Course(names, (*old.choices, done))
                is_all_there = all(choice is _Done.WHOLE for choice in new.choices)
                key = (frozenset(names.items()), is_all_there, _disorder(new.choices) is None)
                if key not in best or new.cost < best[key].cost:
                    best[key] = new
        partial = list(best.values())
    return min(partial, key=lambda course: course.cost, default=None)


def _effects(step: _Step, names: _Names) -> Iterator[tuple[_Done, _Names]]:
    """What the operation can leave of `names`, as far as it could take effect there at all."""
    yield _Done.NOT, names
    naming, path, to = step.operation.form.naming, step.operation.path, step.operation.to
    if naming is Naming.MAKE and path not in names and parent(path) in names:
        yield _Done.WHOLE, {**names, path: step.given}
    if naming is Naming.REMOVE and path in names:
        yield _Done.WHOLE, {name: inode for name, inode in names.items() if name != path}
    linked = step.given or names.get(path)
    if naming is Naming.LINK and linked is not None and to not in names and parent(to) in names:
        yield _Done.WHOLE, {**names, to: linked}
    if naming is Naming.MOVE and path in names and parent(to) in names:
        yield from _renamed(names, path, to)
    if naming is Naming.SWAP and path in names and to in names:
        yield from _exchanged(names, path, to)


def _renamed(names: _Names, path: str, to: str) -> Iterator[tuple[_Done, _Names]]:
    if names.get(to) == names[path]:
        yield _Done.WHOLE, names
        return
    left, moved = _without(names, path), _moved(names, path, to)
    yield _Done.WHOLE, {**left, **moved}
    yield _Done.NEW_ONLY, {**names, **moved}
    yield _Done.OLD_GONE, left


def _exchanged(names: _Names, path: str, to: str) -> Iterator[tuple[_Done, _Names]]:
    left = _without(_without(names, path), to)
    first, second = _moved(names, path, to), _moved(names, to, path)
    yield _Done.WHOLE, {**left, **first, **second}
    yield _Done.PARTLY, {**_without(names, to), **first}
    yield _Done.PARTLY, {**_without(names, path), **second}
    yield _Done.PARTLY, {**left, **first}
    yield _Done.PARTLY, {**left, **second}


def _without(names: _Names, root: str) -> dict[str, int]:
    return {name: inode for name, inode in names.items() if not _is_within(name, root)}


def _moved(names: _Names, root: str, to: str) -> dict[str, int]:
    """`root` and everything in it, with `root` renamed to `to`."""
    return {to + name[len(root) :]: inode for name, inode in names.items() if _is_within(name, root)}


def _last_touch(steps: Sequence[_Step], ever: frozenset[str]) -> dict[str, int]:
    """Each name that an operation makes or removes, with the place of the last operation that does so."""
    last: dict[str, int] = {}
    for place, (operation, _) in enumerate(steps):
        for root in _touched(operation):
            last[root] = place
            if operation.form.naming in _MOVING:
                last.update((name, place) for name in ever if _is_within(name, root))
    return last


def _touched(operation: Operation) -> tuple[str, ...]:
    if operation.form.naming in _MOVING:
        return operation.path, operation.to
    return (operation.to,) if operation.form.naming is Naming.LINK else (operation.path,)


def _is_within(name: str, directory: str) -> bool:
    return name == directory or is_below(name, directory)


_ROWS = (
    ("p1-creats", "", "creat a; creat b"),
    ("p1-creats-fsync-last", "", "creat a; creat b; fsync b"),
    ("p1-creats-fsync-other", "creat o", "creat a; creat b; fsync o"),
    ("p1-creats-two-dirs-fsync-last", D_AND_E, "creat D/a; creat E/b; fsync E/b"),
    ("p1-creats-two-dirs-fsync-dir", D_AND_E, "creat D/a; creat E/b; fsync E"),
    ("p1-unlink-creat-fsync-last", "creat s", "unlink s; creat a; fsync a"),
    ("p1-creat-unlink-fsync-dir", f"{D_AND_E}; creat E/s", "creat D/a; unlink E/s; fsync E"),
    ("p1-unlink-rename", "creat s; creat t", "unlink s; rename t u"),
    ("p1-unlink-rename-fsync-last", "creat s; creat t", "unlink s; rename t u; fsync u"),
    ("p1-unlink-rename-fsync-dir", f"{D_AND_E}; creat D/s; creat E/t", "unlink D/s; rename E/t E/u; fsync E"),
    ("p1-rename-unlink-fsync-other", "creat s; creat t; creat o", "rename t u; unlink s; fsync o"),
    ("p1-rename-unlink-fsync-dir", f"{D_AND_E}; creat D/t; creat E/s", "rename D/t D/u; unlink E/s; fsync E"),
    ("p1-rename-across-fsync-last", f"{D_AND_E}; creat D/t", "rename D/t E/u; creat E/b; fsync E/b"),
    ("p1-creat-rename-creat-fsync-last", "", "creat a; rename a b; creat c; fsync c"),
    ("p1-commit-between-fsync-last", "creat s; creat t", "creat a; commit; unlink s; rename t u; fsync u"),
    ("p1-mkdir-creat-link-fsync-last", "creat s", "mkdir D; creat D/a; link s l; fsync l"),
)
