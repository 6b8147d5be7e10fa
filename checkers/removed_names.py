"""A name that a file lost before it was fsynced is not found again as a name of this file.

fsync(2) promises no name, and no removal of one. But file systems with a journal or a log make the names of a file
durable with the file, and fstests expects that names which were removed before are gone. properties/practice.toml has
the numbers of the tests, and the file systems of which this is expected. `durability` asks for less: an fsync of the
folder covers that the name is gone.

The checker looks at names that unlink or rmdir took away before an fsync of the same inode returned, by another name or
by a handle, and that no operation gives to this inode again. Each directory above the name must be new and must never
have had another name, or it must be certain to be found under its name.

It does not object if what is found can be something else that had the name or gets it later. It does not look at names
that a rename took away: `one_name` does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from postcrash.checkers.bindings import Barrier, Bindings
from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.fsync_names import fsynced_names, stays
from postcrash.checkers.inodes import pasts
from postcrash.checkers.links import Link, chain, link_of
from postcrash.checkers.origins import never
from postcrash.model import Entry, History, Naming, Observation
from postcrash.model.tree import ROOT_PATH
from postcrash.properties.wording import operation_at


class RemovedNames:
    """fsync of a file persists that names which it lost are gone."""

    name = "removed-names"
    statement = "A name that a file lost before an fsync of it returned does not stand for this file again."
    depends_on: tuple[str, ...] = ("started", "returned")
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first name that is there again."""
        for name in _removed(history):
            entry = observation.tree.get(name.path)
            if entry is not None and not entry.error and _is_back(history, name, entry):
                return Objection(self.name, f"{name.said}, but {name.path} is there", name.path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether a file lost a name before it was fsynced."""
        return bool(_removed(history))


@dataclass(frozen=True, slots=True)
class _RemovedName:
    """A path that must not stand for `inode`. `others` are what else it can stand for; `said` is the reason."""

    path: str
    inode: int
    others: frozenset[int]
    said: str


def _is_back(history: History, name: _RemovedName, entry: Entry) -> bool:
    """Whether the entry is the inode that lost the name. `durability` objects to what breaks its promises."""
    known = fsynced_names(history)
    if entry.type != known.bindings.lives.type(name.inode):
        return False
    past = pasts(history).of(name.path)
    if any(not never(past[inode], entry) and known.contents.could_be(inode, entry) for inode in name.others):
        return False
    return known.contents.broken(name.path, entry) is None


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
    lives, tree = bindings.lives, bindings.history.trees[barrier.count]
    for link in lives.links[inode]:
        removal = _removal(bindings, link, inode, barrier.count)
        for folder in tree.names(link.directory) if removal and inode in bindings.standing(link) else ():
            above = [link_of(tree, name) for name in chain(folder)]
            if all(stays(bindings, each, barrier.count) for each in above):
                path = link.name if folder == ROOT_PATH else f"{folder}/{link.name}"
                if not any(inode in bindings.standing(other) for other in _same_path(bindings, folder, link)):
                    said = f"{bindings.said(barrier)} after {removal}"
                    yield _RemovedName(path, inode, bindings.inodes(path) - {inode}, said)


def _same_path(bindings: Bindings, folder: str, link: Link) -> Iterator[Link]:
    """The entries of other directories that may be found at the same path."""
    return (Link(other, link.name) for other in bindings.directories(folder) if other != link.directory)


def _removal(bindings: Bindings, link: Link, inode: int, count: int) -> str:
    """The operation that last took the entry away from the inode, among the first `count`. Empty if none did for good.

    It is empty, too, if something else than a removal did.
    """
    lives, history = bindings.lives, bindings.history
    had = [number for number in range(count) if lives.bound(link, number, number) == {inode}]
    if not had or inode in lives.bound(link, count, history.started):
        return ""
    is_removal = history.workload.operations[had[-1]].form.naming is Naming.REMOVE
    return operation_at(history.workload, had[-1]) if is_removal else ""
