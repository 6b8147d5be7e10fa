"""A name that a file lost before it was fsynced is not found again as a name of this file.

fsync(2) promises no name, and no removal of one. But file systems with a journal or a log make the names of a file
durable with the file, and fstests expects that names which were removed before are gone. properties/practice.toml has
the numbers of the tests, and the file systems of which this is expected. `durability` asks for less: an fsync of the
folder covers that the name is gone.

The checker looks at names that unlink took away before an fsync of the same file returned, by another name or by a
handle, and that no operation gives to this file again. Each directory above the name must never have had another name,
or it must be certain to be found under its name.

It does not object if what is found can be something else that had the name or gets it later. If this follows from
nothing but its size, the bytes decide. It cannot if it is one file with a name that an fsync promises to the file that
lost the name. It does not look at these names:

- names that a rename took away (`one_name` looks at them), or gave to another file;
- names below a directory that an operation renames;
- names whose directory was made durable after the removal (`durability` looks at them; if the name is used again,
  `never-written` and `foreign-bytes`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from postcrash.checkers.bindings import Barrier, Bindings, Inodes
from postcrash.checkers.checker import Checker
from postcrash.checkers.fsync_names import fsynced_names
from postcrash.checkers.inode_identity import foreign_range, mismatch
from postcrash.checkers.inodes import Past, pasts
from postcrash.checkers.links import Link, chain, link_of, within
from postcrash.checkers.matching import identity
from postcrash.model import Entry, History, Naming, Observation, Tree
from postcrash.model.judge import Opinion, holds, violated
from postcrash.properties.wording import operation_at


class RemovedNames(Checker):
    """fsync of a file persists that names which it lost are gone."""

    name = "removed-names"
    statement = "A name that a file lost before an fsync of it returned does not stand for this file again."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first name that is there again."""
        for name in _removed(history):
            entry = observation.tree.get(name.path)
            if entry is not None and _is_back(history, name, entry, observation.tree):
                return violated(f"{name.reason}, but {name.path} is there", name.path)
        return holds(relevant=bool(_removed(history)))


@dataclass(frozen=True, slots=True)
class _RemovedName:
    """A path that must not stand for `inode`. `others` are what else it can stand for; `reason` is the reason."""

    path: str
    inode: int
    others: frozenset[int]
    reason: str


def _is_back(history: History, name: _RemovedName, entry: Entry, tree: Tree) -> bool:
    """Whether the entry is the inode that lost the name. `durability` objects to what breaks its promises."""
    known, past = fsynced_names(history), pasts(history).of(name.path)
    if entry.type != known.bindings.inode_history.type(name.inode):
        return False
    others = [past[other] for other in name.others if known.contents.could_be(other, entry)]
    others = [other for other in others if not mismatch(other, entry)]
    is_identified = not others or _is_certain(history, name.inode, entry, tree)
    if not is_identified and not _is_identified_by_bytes(known.bindings, name.inode, others, entry):
        return False
    return known.contents.broken(name.path, entry) is None


def _is_certain(history: History, inode: int, entry: Entry, tree: Tree) -> bool:
    """Whether the entry is one file with a name that an fsync promises to this inode alone."""
    known = fsynced_names(history)
    pins = known.pins(tree).get(identity(entry), ())
    return any(pin.inodes == {inode} and known.is_kept(pin.name, tree) for pin in pins)


def _is_identified_by_bytes(bindings: Bindings, inode: int, others: list[Past], entry: Entry) -> bool:
    """Whether the bytes are those of the inode, and none of the others ever had them.

    The inode must have them to the end: another file that uses its blocks again may show them.
    """
    started, end = bindings.history.started, bindings.history.trees[bindings.history.started]
    if not end.names(inode) and all(held.inode != inode for held in end.held.values()):
        return False
    own = Past(written={*bindings.inode_history.states(inode, started, started)[-1].segments})
    return foreign_range(own, entry) is None and all(foreign_range(other, entry) for other in others)


@lru_cache(maxsize=256)
def _removed(history: History) -> tuple[_RemovedName, ...]:
    """The names of a history, computed once. If several files lost a name, it must stand for none of them."""
    bindings = fsynced_names(history).bindings
    lost = {(name.path, name.inode): name for each in bindings.fsyncs() for name in _lost(bindings, *each)}
    return tuple(
        replace(name, others=frozenset(other for other in name.others if (name.path, other) not in lost))
        for name in lost.values()
    )


def _lost(bindings: Bindings, barrier: Barrier, inode: int) -> Iterator[_RemovedName]:
    """The names that the inode lost before the barrier, and has as far as documents say."""
    for link in bindings.inode_history.links[inode]:
        number = _removal(bindings, link, inode, barrier.count)
        if number is None or inode not in bindings.stands_for(link):
            continue
        reason = f"{bindings.describe(barrier)} after {operation_at(bindings.history.workload, number)}"
        for folder in _folders(bindings, link.directory, number, barrier.count):
            if inode not in _elsewhere(bindings, folder, link):
                path = within(folder, link.name)
                yield _RemovedName(path, inode, bindings.inodes(path), reason)


def _folders(bindings: Bindings, directory: int, *counts: int) -> list[str]:
    """The paths that the directory has after one of these numbers of operations, and under which only it can be found.

    It and those above it never have another path, or are certain to have this one.
    """
    trees = [bindings.history.trees[count] for count in counts]
    found = [folder for tree in trees for folder in tree.names(directory) if _has_one_path(bindings, folder, tree)]
    return list(dict.fromkeys(found))


def _has_one_path(bindings: Bindings, folder: str, tree: Tree) -> bool:
    """Whether `folder` and those above it never have another path than in this tree, or are certain to have it."""
    return all(bindings.is_only_entry(link_of(tree, path), tree[path].inode) for path in chain(folder))


def _elsewhere(bindings: Bindings, folder: str, link: Link) -> Inodes:
    """What the name can stand for in other directories that can be found as `folder`."""
    others = (Link(other, link.name) for other in bindings.directories(folder) if other != link.directory)
    return Inodes().union(*map(bindings.stands_for, others))


def _removal(bindings: Bindings, link: Link, inode: int, count: int) -> int | None:
    """The index of the operation that last took the entry away from the inode, among the first `count`.

    None if none did for good, or if something else than a removal did.
    """
    inode_history, history = bindings.inode_history, bindings.history
    if inode in inode_history.bound(link, count, history.started):
        return None
    number = inode_history.taken_away(link, count, inode)
    if number is None or history.workload.operations[number].form.naming is not Naming.REMOVE:
        return None
    return number
