"""A file that was fsynced is found under the names that it had then.

fsync(2) promises no name. But file systems with a journal or a log make the names of an inode durable with the inode,
and fstests expects this of them. properties/practice.toml has the numbers of the tests, and the file systems of which
this is expected.

The checker checks the names that the file had when fsync returned. It checks each name as long as no operation that had
started takes it away. Each directory above the name must be new and must never have had another name, or it must be
certain to be found under its name. If documents promise a name and all directories above it, `durability` checks them.

The file that is found must be the one that was fsynced, or one that a later operation gives the name. It is taken for
one of these if it holds what was promised of it. `durability` asks for less: if the directory was not made durable, the
name may stand for an older file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from postcrash.checkers.bindings import Barrier, Bindings
from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.links import Link, chain, link_of
from postcrash.checkers.obligations import Contents
from postcrash.model import Entry, EntryType, History, Observation


class FsyncNames:
    """fsync of a file persists its names."""

    name = "fsync-names"
    statement = "A file is found under each name that it had when an fsync of it returned."
    depends_on: tuple[str, ...] = ("started", "returned")
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first name that is missing, or stands for something else than the fsynced file or a later one."""
        known = _names(history)
        for name in known.names:
            entry = observation.tree.get(name.path)
            if entry is not None and entry.type in name.types:
                wrong = "is another file" if known.is_other(name, entry) else ""
            else:
                wrong = "" if name.is_promised else "is missing" if entry is None else f"is a {entry.type}"
            if wrong:
                return Objection(self.name, f"{name.said}, but {name.path} {wrong}", name.path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether a file was fsynced under a name that no document promises to this file."""
        return bool(_names(history).names)


@dataclass(frozen=True, slots=True)
class _Name:
    """A path that must exist.

    types        what it can be
    inodes       the files that it can stand for: the one that was fsynced, and later ones
    said         the reason, for messages
    is_promised  whether documents promise that the path exists
    """

    path: str
    types: frozenset[EntryType]
    inodes: frozenset[int]
    said: str
    is_promised: bool


class _Names:
    """The names of one history that fsyncs of files make last, without those of which `durability` asks as much."""

    def __init__(self, bindings: Bindings) -> None:
        self._contents = Contents(bindings)
        found: dict[str, _Name] = {}
        for barrier, inode in bindings.fsyncs():
            for name in _lasting(bindings, barrier, inode):
                found.setdefault(name.path, name)
        self.names = tuple(
            name for name in found.values() if not name.is_promised or bindings.inodes(name.path) > name.inodes
        )

    def is_other(self, name: _Name, entry: Entry) -> bool:
        """Whether the entry is none of the files that the name can stand for, and `durability` accepts it."""
        if any(self._contents.could_be(inode, entry) for inode in name.inodes):
            return False
        return self._contents.broken(name.path, entry) is None


@lru_cache(maxsize=256)
def _names(history: History) -> _Names:
    return _Names(Bindings(history))


def _lasting(bindings: Bindings, barrier: Barrier, inode: int) -> Iterator[_Name]:
    """The names that the file had then and that nothing has taken away since."""
    tree, lives, started = bindings.history.trees[barrier.count], bindings.lives, bindings.history.started
    for link, path in lives.paths(inode, barrier.count):
        above = [link_of(tree, name) for name in chain(path)][:-1]
        bound = lives.bound(link, barrier.count, started)
        if None not in bound and all(_stays(bindings, each, barrier.count) for each in above):
            inodes = frozenset(other for other in bound if other is not None)
            types = frozenset(map(lives.type, inodes))
            is_promised = all(map(bindings.promised, chain(path)))
            yield _Name(path, types, inodes, bindings.said(barrier), is_promised)


def _stays(bindings: Bindings, link: Link, count: int) -> bool:
    """Whether the directory that the entry stands for after `count` operations has no other name to be found under."""
    lives, started = bindings.lives, bindings.history.started
    now = lives.bound(link, count, started)
    (directory, *others) = now
    if others or directory is None:
        return False
    return bindings.standing(link) == now or lives.links[directory] == [link]
