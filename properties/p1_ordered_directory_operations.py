"""P1, ordered directory operations.

A tree is explained by saying of each directory operation that it is not there, there as a whole, or (a rename) there
by half: the new name without the old one gone, or the old name gone without the new one. P1 is broken if every
explanation with the fewest halves has an operation that is visible after one that is not wholly there.

So an effect that the tree cannot show, such as that of `creat A` once `unlink A` has its effect, is never held against
the file system, and a rename that is half done breaks P1 only if something later is visible: by itself it breaks
atomicity, which P1 does not promise.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from postcrash.model import History, Operation, Tree, Workload
from postcrash.model.tree import ROOT_PATH
from postcrash.properties.family import family
from postcrash.properties.property import IRRELEVANT, Judgement
from postcrash.properties.wording import operation_at

Names = frozenset[str]

_MAKING = ("creat", "mkdir", "symlink")
_REMOVING = ("unlink", "rmdir")
_WORDS = (*_MAKING, *_REMOVING, "link", "rename")


class OrderedDirectoryOperations:
    """P1 of HotDep'13."""

    name = "P1"
    title = "ordered directory operations"
    statement = (
        "Of a sequence of directory operations, if the tree after a crash contains the effect of one, "
        "it contains the effects of all those before it."
    )
    source = "HotDep'13, section 2 (P1); link, mkdir, rmdir and symlink are ours"
    exclusions = (
        "A directory operation that is half done (the paper's property is about order, not atomicity), "
        "unless something later is visible.",
        "An effect that no longer shows, as of a creat whose file was unlinked.",
        "exchange: it leaves the same names behind.",
        "Contents, sizes, link counts and attributes.",
    )

    def workloads(self) -> tuple[Workload, ...]:
        """Sequences that file systems reorder, with and without a flush of something."""
        return _FAMILY

    def judge(self, history: History, tree: Tree) -> Judgement:
        """Relevant where an operation is visible that is not the first."""
        indices = _directory_operations(history)
        if not indices:
            return IRRELEVANT
        operations = [history.workload.operations[index] for index in indices]
        before = frozenset(history.trees[len(history.workload.setup)].paths())
        touched = _last_touch(operations, frozenset(path for t in history.trees for path in t.paths()))
        explanation = _simplest(operations, before, touched, frozenset(tree.paths()))
        if explanation is None:
            names = ", ".join(sorted(path for path in touched if path in tree)) or "none"
            return Judgement(False, True, f"no choice of the operations explains the names that are there: {names}")
        return _judged(history.workload, indices, explanation)


def _judged(workload: Workload, indices: Sequence[int], explanation: "_Explanation") -> Judgement:
    shown = [place for place, done in enumerate(explanation.choices) if done is not _Done.NOT]
    relevant = bool(shown) and shown[-1] > 0
    disorder = _disorder(explanation.choices)
    if disorder is None:
        return Judgement(True, relevant, "in order" if relevant else "")
    missing, visible = disorder
    message = (
        f"{operation_at(workload, indices[visible])} is visible, "
        f"{operation_at(workload, indices[missing])} before it is {explanation.choices[missing].value}"
    )
    return Judgement(False, True, message)


def _directory_operations(history: History) -> list[int]:
    operations = history.workload.operations[: history.started]
    first = len(history.workload.setup)
    return [index for index, operation in enumerate(operations) if index >= first and operation.word in _WORDS]


# Explaining a tree


class _Done(Enum):
    """How much of an operation's effect is there."""

    NOT = "not"
    WHOLE = "whole"
    NEW_ONLY = "half done (the old name is still there)"
    OLD_GONE = "half done (the new name is missing)"


class _Explanation(NamedTuple):
    names: Names
    choices: tuple[_Done, ...]

    @property
    def cost(self) -> tuple[int, bool, int]:
        """What makes one explanation simpler than another: fewer halves, in order, fewer operations."""
        halves = sum(done in (_Done.NEW_ONLY, _Done.OLD_GONE) for done in self.choices)
        visible = sum(done is not _Done.NOT for done in self.choices)
        return halves, _disorder(self.choices) is not None, visible


def _disorder(choices: Sequence[_Done]) -> tuple[int, int] | None:
    """The first operation that is not wholly there and the first one visible after it."""
    missing = next((place for place, done in enumerate(choices) if done is not _Done.WHOLE), len(choices))
    later = (place for place in range(missing + 1, len(choices)) if choices[place] is not _Done.NOT)
    visible = next(later, None)
    return None if visible is None else (missing, visible)


def _simplest(
    operations: Sequence[Operation], before: Names, last_touch: dict[str, int], observed: Names
) -> _Explanation | None:
    """The explanation of `observed` of the least cost; None if there is none.

    Of partial explanations that can go on in the same ways, only the simplest is kept; and a name that no later
    operation touches must be as observed. With each name used once hardly more than one is ever left.
    """
    partial = [_Explanation(before, ())]
    for place, operation in enumerate(operations):
        settled = [name for name, last in last_touch.items() if last == place]
        best: dict[tuple[Names, bool, bool], _Explanation] = {}
        for old in partial:
            for done, names in _effects(operation, old.names):
                if any((name in names) != (name in observed) for name in settled):
                    continue
                new = _Explanation(names, (*old.choices, done))
                key = (names, all(c is _Done.WHOLE for c in new.choices), _disorder(new.choices) is None)
                if key not in best or new.cost < best[key].cost:
                    best[key] = new
        partial = list(best.values())
    return min(partial, key=lambda explanation: explanation.cost, default=None)


def _effects(operation: Operation, names: Names) -> Iterator[tuple[_Done, Names]]:
    """What the operation can leave of `names`; only what it could do there at all."""
    yield _Done.NOT, names
    path, to = operation.path, operation.to
    if operation.word in _MAKING and path not in names and _parent(path) in names:
        yield _Done.WHOLE, names | {path}
    if operation.word in _REMOVING and path in names:
        yield _Done.WHOLE, names - {path}
    if operation.word == "link" and path in names and to not in names and _parent(to) in names:
        yield _Done.WHOLE, names | {to}
    if operation.word == "rename" and path in names and _parent(to) in names:
        old = frozenset(name for name in names if _is_within(name, path))
        new = frozenset(to + name[len(path) :] for name in old)
        yield _Done.WHOLE, (names - old) | new
        yield _Done.NEW_ONLY, names | new
        yield _Done.OLD_GONE, names - old


def _last_touch(operations: Sequence[Operation], ever: Names) -> dict[str, int]:
    """Each name that an operation makes or removes, with the place of the last one that does."""
    last: dict[str, int] = {}
    for place, operation in enumerate(operations):
        for root in _touched(operation):
            last[root] = place
            if operation.word == "rename":
                last.update((name, place) for name in ever if _is_within(name, root))
    return last


def _touched(operation: Operation) -> tuple[str, ...]:
    if operation.word == "rename":
        return operation.path, operation.to
    return (operation.to,) if operation.word == "link" else (operation.path,)


def _is_within(name: str, directory: str) -> bool:
    return name == directory or name.startswith(f"{directory}/")


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT_PATH


_D_AND_E = "mkdir D; mkdir E"

_FAMILY = family(
    ("p1-creats", "", "creat a; creat b"),
    ("p1-creats-fsync-last", "", "creat a; creat b; fsync b"),
    ("p1-creats-fsync-other", "creat o", "creat a; creat b; fsync o"),
    ("p1-creats-two-dirs-fsync-last", _D_AND_E, "creat D/a; creat E/b; fsync E/b"),
    ("p1-creats-two-dirs-fsync-dir", _D_AND_E, "creat D/a; creat E/b; fsync E"),
    ("p1-unlink-creat-fsync-last", "creat s", "unlink s; creat a; fsync a"),
    ("p1-creat-unlink-fsync-dir", f"{_D_AND_E}; creat E/s", "creat D/a; unlink E/s; fsync E"),
    ("p1-unlink-rename", "creat s; creat t", "unlink s; rename t u"),
    ("p1-unlink-rename-fsync-last", "creat s; creat t", "unlink s; rename t u; fsync u"),
    ("p1-unlink-rename-fsync-dir", f"{_D_AND_E}; creat D/s; creat E/t", "unlink D/s; rename E/t E/u; fsync E"),
    ("p1-rename-unlink-fsync-other", "creat s; creat t; creat o", "rename t u; unlink s; fsync o"),
    ("p1-rename-unlink-fsync-dir", f"{_D_AND_E}; creat D/t; creat E/s", "rename D/t D/u; unlink E/s; fsync E"),
    ("p1-rename-across-fsync-last", f"{_D_AND_E}; creat D/t", "rename D/t E/u; creat E/b; fsync E/b"),
    ("p1-creat-rename-creat-fsync-last", "", "creat a; rename a b; creat c; fsync c"),
    ("p1-commit-between-fsync-last", "creat s; creat t", "creat a; commit; unlink s; rename t u; fsync u"),
    ("p1-mkdir-creat-link-fsync-last", "creat s", "mkdir D; creat D/a; link s l; fsync l"),
)
