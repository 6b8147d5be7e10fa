"""After a rename a file is under its old name or under its new one, never under both, and never under neither.

rename(2) says that there "will probably be a window in which both oldpath and newpath refer to the file being renamed".
File systems with a journal or a log commit a rename as a whole, and fstests expects this of them.
properties/practice.toml has the numbers of the tests, and the file systems of which this is expected. What was part of
the durable set-up, or was fsynced, must be under one of the names that it has had since, unless an operation removes
it. The latest fsync before the rename counts. `durability` asks for less: an fsync of the old folder covers that the
name is gone from there, and an fsync of a file promises no name.

What is found under a name is taken for the renamed thing if it holds what was promised of it, or if it breaks a promise
to which `durability` holds it. It is not taken for it if another thing must be there: if an fsync promises the name to
another file (`fsync_names`), or if two renamed things would have to be the one that was found.

The checker does not look for a file under both names in these cases: something had both names at once, because a link
gave it one of them; the names are two renames apart; the operation is an exchange; the entries cannot be read, which
`mounts` checks. If a directory above one of the names ever has another path, the checker goes by the last parts of
the names. It does not look at such a rename if a file with several links ever had a name with one of these last parts.

It does not look for a file under neither name in these cases: the file was made after the set-up and not fsynced, has
several links, or is removed or replaced by an operation; an operation renames the name's directory; what is found under
the name cannot be told from the file, and need not be there.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from postcrash.checkers.bindings import bindings_of
from postcrash.checkers.checker import Checker
from postcrash.checkers.fsync_names import fsynced_names, stays
from postcrash.checkers.inode_history import inode_history
from postcrash.checkers.links import chain, link_of
from postcrash.checkers.matching import identity, mistaken_for_another, unmatched
from postcrash.model import History, Naming, Observation, Operation, Tree, Workload
from postcrash.model.judge import CannotTellError, Opinion, holds, violated
from postcrash.model.tree import ROOT_PATH, is_one_folder, parent
from postcrash.properties.wording import operation_at


class OneName(Checker):
    """A rename moves a name. It never doubles it, and never loses it."""

    name = "one-name"
    statement = (
        "What was renamed is found under its old or its new name: never both, and if it was durable never neither."
    )

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first rename whose two names stand for one inode, or that has lost what was durable.

        Raises `CannotTellError` if an entry that could not be read may hide the name.
        """
        renames = _renames(history)
        for number, old, new in renames:
            one, other = observation.tree.get(old), observation.tree.get(new)
            if one and other and not one.error and (one.inode, one.type) == (other.inode, other.type):
                rename = operation_at(history.workload, number)
                return violated(f"{rename}: the same {one.type} is {old} and {new}", new)
        if lost := _Found(history, observation.tree).lost():
            if unread := next((entry for entry in observation.tree.values() if entry.error), None):
                raise CannotTellError(f"{unread.path} cannot be read (errno {unread.error}), and may have the name")
            move, why = lost
            rename, missing = operation_at(history.workload, move.number), " nor ".join(move.names)
            return violated(f"{rename}: what was durable is neither {missing}{why}", move.names[-1])
        return holds(
            relevant=bool(_moved(history)) or any(name in observation.tree for _, *names in renames for name in names)
        )


def _renames(history: History) -> list[tuple[int, str, str]]:
    """Renames that had started and whose names nothing can have both: the operation's number, the old, the new name."""
    return [
        (number, operation.path, operation.to)
        for number, operation in enumerate(history.workload.operations[: history.started])
        if operation.word == "rename" and not _has_both(history.workload, history.started, operation.path, operation.to)
    ]


@lru_cache(maxsize=4096)
def _has_both(workload: Workload, started: int, old: str, new: str) -> bool:
    """Whether something can have both names without a fault, because it had them at once while operations ran."""
    trees = inode_history(workload).trees[: started + 1]
    if all(is_one_folder(trees, folder) for name in (old, new) for folder in chain(parent(name))):
        entries = ((tree.get(old), tree.get(new)) for tree in trees)
        return any(one is not None and other is not None and one.inode == other.inode for one, other in entries)
    return not {old.rpartition("/")[2], new.rpartition("/")[2]}.isdisjoint(_shared_names(workload, started))


@dataclass(frozen=True, slots=True)
class _Move:
    """Operation `number` renamed a durable inode. `names` are all that it has had since it was durable, latest last."""

    number: int
    inode: int
    names: tuple[str, ...]


@lru_cache(maxsize=1024)
def _moved(history: History) -> tuple[_Move, ...]:
    """Renames of what was durable and nothing that had started removes.

    If the inode became durable several times before the rename, the last time that can be followed counts.
    """
    found: dict[tuple[int, int], _Move] = {}
    for count, inode in _durable(history):
        trees = inode_history(history.workload).trees[count : history.started + 1]
        for number in range(count, history.started):
            for moved in _operands(history.workload.operations[number], trees[number - count]):
                if inode not in (None, moved) or not trees[0].names(moved):
                    continue
                names = _names_since(trees, moved)
                if names and (inode is None or _is_found_under(history, trees[0], names, count)):
                    found[number, moved] = _Move(number, moved, names)
    return tuple(move for _, move in sorted(found.items()))


def _operands(operation: Operation, before: Tree) -> list[int]:
    """The inodes to which the operation gives another name: one that is renamed, or two that are exchanged."""
    match operation.form.naming:
        case Naming.MOVE:
            paths = [operation.path]
        case Naming.SWAP:
            paths = [operation.path, operation.to]
        case _:
            paths = []
    return [entry.inode for path in paths if (entry := before.get(path)) is not None]


class _Found:
    """What was found after a crash, and what it can be."""

    def __init__(self, history: History, tree: Tree) -> None:
        self._moves = _moved(history)
        self._tree = tree
        self._known = fsynced_names(history)
        self._pins = self._known.pins(tree) if self._moves else {}

    def lost(self) -> tuple[_Move, str] | None:
        """The first rename of something that is under none of its names, with a clause that tells what is there."""
        places: dict[int, list[str]] = {}
        last = {move.inode: move for move in self._moves}
        for move in self._moves:
            places[move.inode] = [name for name in move.names if name in self._tree]
            if not any(self._could_be(move.inode, name) for name in places[move.inode]):
                return move, self._why(move, places[move.inode])
        inode = unmatched(self._tree, places, self._could_be)
        return (last[inode], self._why(last[inode], places[inode])) if inode is not None else None

    def _could_be(self, inode: int, path: str) -> bool:
        """Whether the inode can be what is found there, and what is found need not be something else."""
        if not self._is_like(inode, path):
            return False
        pins = self._pins.get(identity(self._tree[path]), ())
        return not any(inode not in pin.inodes and self._known.is_kept(pin.name, self._tree) for pin in pins)

    def _is_like(self, inode: int, path: str) -> bool:
        """Whether what is found there can be the inode, intact or with a fault to which `durability` objects."""
        entry, bindings, contents = self._tree[path], self._known.bindings, self._known.contents
        promised = bindings.inodes(path)
        if (promised and inode not in promised) or bindings.inode_history.type(inode) != entry.type:
            return False
        return contents.could_be(inode, entry) or contents.broken(path, entry) is not None

    def _why(self, move: _Move, names: list[str]) -> str:
        alike = [name for name in names if self._is_like(move.inode, name)]
        if alike:
            return mistaken_for_another(alike)
        return "".join(f"; {name} is another {self._tree[name].type}" for name in names)


def _durable(history: History) -> Iterator[tuple[int, int | None]]:
    """The number of operations after which an inode was durable with its names. None: all inodes of the set-up."""
    yield len(history.workload.setup), None
    for barrier, inode in bindings_of(history).fsyncs():
        yield barrier.count, inode


def _is_found_under(history: History, tree: Tree, names: Sequence[str], count: int) -> bool:
    """Whether a crash leaves each directory above the names under the name that it had after `count` operations.

    A directory that was renamed before may have its old name again, because an fsync of what is in it need not make the
    rename durable. Directories that were made later do not count.
    """
    folders = {folder for name in names for folder in chain(parent(name)) if folder in tree}
    return all(stays(fsynced_names(history).bindings, link_of(tree, folder), count) for folder in folders)


def _names_since(trees: Sequence[Tree], inode: int) -> tuple[str, ...]:
    """The names that the inode has in these trees. Empty if it has none or several in a tree, or if a folder moves."""
    each = [tree.names(inode) for tree in trees]
    names = tuple(dict.fromkeys(name for names in each for name in names))
    is_followed = all(len(names) == 1 for names in each) and all(is_one_folder(trees, parent(name)) for name in names)
    return names if is_followed else ()


@lru_cache(maxsize=256)
def _shared_names(workload: Workload, started: int) -> frozenset[str]:
    """The last parts of all names that an inode with several names at once ever had."""
    known = inode_history(workload)
    shared = set()
    for tree in known.trees[: started + 1]:
        counts = Counter(tree[path].inode for path in tree.paths() if path != ROOT_PATH)
        shared |= {inode for inode, count in counts.items() if count > 1}
    return frozenset(
        link.name for inode in shared for link in known.links[inode] if inode in known.bound(link, 0, started)
    )
