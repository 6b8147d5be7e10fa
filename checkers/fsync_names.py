"""A file or directory that was fsynced is found under the names that it had then.

fsync(2) promises no name. But file systems with a journal or a log make the names of an inode durable with the inode,
and fstests expects this of them. properties/practice.toml has the numbers of the tests, and the file systems of which
this is expected.

The checker checks the names that the file or directory had when fsync returned. A write with O_SYNC is as good as an
fsync (open(2)). It checks each name as long as no operation that had started takes it away. If documents promise a name
and all directories above it, `durability` checks them.

A directory above the name can have another path, because an operation had moved it, or moves it. Then the name must be
in the directory under one of all paths that this ever had, and the checker does not look at what is found there.

The file that is found must be the one that was fsynced, or one that a later operation gives the name. It is taken for
one of these if it holds what was promised of it. `durability` asks for less: if the directory was not made durable, the
name may stand for an older file. If several files were fsynced under one name in turn, each of these fsyncs counts. A
later one never leaves open more than an earlier one.

Two names may need different files of which one was found. `one_name` looks for this.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from postcrash.checkers.bindings import Barrier, Bindings, bindings_of
from postcrash.checkers.checker import Checker
from postcrash.checkers.links import Link, chain, link_of, within
from postcrash.checkers.matching import Identity, identity
from postcrash.checkers.obligations import Contents
from postcrash.model import Entry, EntryType, History, Observation, Tree
from postcrash.model.judge import Opinion, holds, violated
from postcrash.model.tree import parent


class FsyncNames(Checker):
    """fsync of a file or directory persists its names."""

    name = "fsync-names"
    statement = "A file or directory is found under each name that it had when an fsync of it returned."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first name that is missing, or stands for something else than the fsynced file or a later one."""
        known = fsynced_names(history)
        for name in known.names:
            entry = observation.tree.get(name.path)
            if entry is not None and entry.type in name.types:
                wrong = "is another file" if known.is_other(name, entry) else ""
            else:
                wrong = "" if name.is_promised else "is missing" if entry is None else f"is a {entry.type}"
            if wrong:
                return violated(f"{name.reason}, but {name.path} {wrong}", name.path)
        for moving in known.moving:
            if not any(path in observation.tree for path in moving.paths):
                missing = " nor ".join(moving.paths)
                return violated(f"{moving.reason}, but there is neither {missing}", moving.paths[-1])
        return holds(relevant=bool(known.names or known.moving))


@dataclass(frozen=True, slots=True)
class FsyncedName:
    """A path that must exist.

    types        what it can be
    inodes       the files that it can stand for: the one that was fsynced, and later ones
    above        the directories above it, and which inodes they must be
    reason         the reason, for messages
    is_promised  whether documents promise that the path exists
    """

    path: str
    types: frozenset[EntryType]
    inodes: frozenset[int]
    above: tuple[tuple[str, int], ...]
    reason: str
    is_promised: bool


class MovingName(NamedTuple):
    """A name in a directory that has had several `paths`. It must exist under one of them; `reason` is the reason."""

    paths: tuple[str, ...]
    reason: str


class Pin(NamedTuple):
    """If `name` stands for what it should, what was found at some place can only be one of these inodes."""

    name: FsyncedName
    inodes: frozenset[int]


class FsyncedNames:
    """The names that fsyncs made durable in one history. `names` is without those that `durability` asks for.

    `moving` are the names in directories that can have another path.
    """

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.contents = Contents(bindings)
        found: dict[tuple[str, frozenset[int]], FsyncedName] = {}
        moving: dict[tuple[str, ...], MovingName] = {}
        for barrier, inode in bindings.fsyncs():
            for name in _lasting(bindings, barrier, inode):
                if isinstance(name, MovingName):
                    moving.setdefault(name.paths, name)
                else:
                    found.setdefault((name.path, name.inodes), name)
        self._all, self.moving = tuple(found.values()), tuple(moving.values())
        self.names = tuple(
            name for name in self._all if not name.is_promised or bindings.inodes(name.path) > name.inodes
        )

    def pins(self, tree: Tree) -> Mapping[Identity, list[Pin]]:
        """What each thing in `tree` can be that has such a name, or that is a directory above it."""
        found: dict[Identity, list[Pin]] = defaultdict(list)
        for name in self._all:
            if name.path in tree:
                found[identity(tree[name.path])].append(Pin(name, name.inodes))
                for path, inode in name.above:
                    found[identity(tree[path])].append(Pin(name, frozenset({inode})))
        return found

    def is_kept(self, name: FsyncedName, tree: Tree) -> bool:
        """Whether `tree` has a file under the name that can be one of those for which the name can stand."""
        entry = tree.get(name.path)
        return entry is not None and any(self.contents.could_be(inode, entry) for inode in name.inodes)

    def is_other(self, name: FsyncedName, entry: Entry) -> bool:
        """Whether the entry is none of the files that the name can stand for, and `durability` accepts it."""
        if any(self.contents.could_be(inode, entry) for inode in name.inodes):
            return False
        return self.contents.broken(name.path, entry) is None


@lru_cache(maxsize=256)
def fsynced_names(history: History) -> FsyncedNames:
    """The names of a history, computed once."""
    return FsyncedNames(bindings_of(history))


def _lasting(bindings: Bindings, barrier: Barrier, inode: int) -> Iterator[FsyncedName | MovingName]:
    """The names that the file had then and that nothing has taken away since."""
    tree, inode_history, started = (
        bindings.history.trees[barrier.count],
        bindings.inode_history,
        bindings.history.started,
    )
    for link, path in inode_history.paths(inode, barrier.count):
        bound, reason = inode_history.bound(link, barrier.count, started), bindings.describe(barrier)
        if None in bound:
            continue
        if not keeps_its_path(bindings, parent(path), barrier.count):
            folders = inode_history.paths_ever(link.directory, started)
            yield MovingName(tuple(within(folder, link.name) for folder in sorted(folders)), reason)
            continue
        inodes = frozenset(other for other in bound if other is not None)
        types = frozenset(map(inode_history.type, inodes))
        is_promised = all(map(bindings.promised, chain(path)))
        directories = tuple((each, tree[each].inode) for each in chain(path) if each != path)
        yield FsyncedName(path, types, inodes, directories, reason, is_promised)


def keeps_its_path(bindings: Bindings, folder: str, count: int) -> bool:
    """Whether `folder` of the tree after `count` operations, and each above it, has no other path to be found under."""
    tree = bindings.history.trees[count]
    return all(stays(bindings, link_of(tree, path), count) for path in chain(folder))


def stays(bindings: Bindings, link: Link, count: int) -> bool:
    """Whether the directory that the entry stands for after `count` operations has no other name to be found under."""
    inode_history, started = bindings.inode_history, bindings.history.started
    now = inode_history.bound(link, count, started)
    (directory, *others) = now
    if others or directory is None:
        return False
    return bindings.is_only_entry(link, directory)
