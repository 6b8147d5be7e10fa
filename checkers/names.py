"""What a history promises of names after a crash: names that are there, names that are gone, files that have a name.

`durability.py` says in prose what is promised and what is not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from postcrash.checkers.bindings import Barrier, Bindings
from postcrash.checkers.links import Link, chain, link_of, within
from postcrash.checkers.matching import CouldBe, mistaken_for_another, unmatched
from postcrash.model import Entry, Tree
from postcrash.model.simulate import ROOT_INODE
from postcrash.model.tree import MADE_BY_MKFS, ROOT_PATH
from postcrash.properties.wording import operation_at

Broken = tuple[int, str, str]
"""A broken promise: the number of operations before it, the name that it concerns, and a message."""


@dataclass(frozen=True, slots=True)
class KeptInode:
    """An inode that must be found, whichever later operations a crash keeps.

    `path` is the name that it had when `barrier` made this name durable.
    """

    inode: int
    path: str
    barrier: Barrier


class NameObligations:
    """The obligations of one history about names."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._certain: dict[int, dict[str, Barrier]] = {}
        self._entries = bindings.inode_history.entries
        self.kept = tuple(self._kept()) if bindings.barriers else ()

    @property
    def is_any(self) -> bool:
        """Whether anything at all is promised about names."""
        known = [link for entries in self._entries.values() for link in entries]
        return bool(self.kept) or any(self._bindings.certain(link) or self._bindings.gone(link) for link in known)

    # Names that must be there, and names that must not

    def missing(self, tree: Tree) -> Iterator[Broken]:
        """Names that are missing or of another type although each possible directory was promised to have them."""
        for directory, found in tree.items():
            meant = self._bindings.directories(directory) if found.type == "dir" else []
            for name in self._certain_of(meant[0]) if meant else ():
                if all(name in self._certain_of(other) for other in meant[1:]):
                    path = within(directory, name)
                    yield from self._missing(path, tree.get(path))

    def _missing(self, path: str, entry: Entry | None) -> Iterator[Broken]:
        types = {self._bindings.inode_history.type(inode) for inode in self._bindings.inodes(path)}
        if entry is not None and entry.type in types:
            return
        barrier = self._bindings.promised(path)
        assert barrier is not None
        found = "is missing" if entry is None else f"is a {entry.type}; it promised a {' or '.join(sorted(types))}"
        yield barrier.count, path, f"{self._bindings.describe(barrier)}, but {path} {found}"

    def _certain_of(self, directory: int) -> dict[str, Barrier]:
        """The names that the directory certainly has."""
        if directory not in self._certain:
            found = {link.name: self._bindings.certain(link) for link in self._entries.get(directory, ())}
            self._certain[directory] = {name: barrier for name, barrier in sorted(found.items()) if barrier}
        return self._certain[directory]

    def reappeared(self, tree: Tree) -> Iterator[Broken]:
        """Names that are there although they were durably removed."""
        for path in tree:
            if path == ROOT_PATH or path in MADE_BY_MKFS or self._bindings.inodes(path):
                continue
            gone = [(link, barrier) for link in self._bindings.entries(path) if (barrier := self._bindings.gone(link))]
            for link, barrier in gone[:1]:
                removal = self._removal(link, barrier.count)
                yield barrier.count, path, f"{self._bindings.describe(barrier)} after {removal}, but {path} is there"

    def _removal(self, link: Link, count: int) -> str:
        """The operation that last took the entry away."""
        number = self._bindings.inode_history.taken_away(link, count)
        assert number is not None
        return operation_at(self._bindings.history.workload, number)

    # Names that must stand for one inode, or for two

    def misidentified(self, tree: Tree) -> Iterator[Broken]:
        """Names of one inode that are found as two inodes, and names of two inodes that are found as one."""
        if not self._bindings.barriers:
            return
        names = [path for path, entry in tree.items() if entry.type != "dir" and entry.inode]
        meant = {path: inodes for path in names if (inodes := self._bindings.inodes(path))}
        yield from self._split_inodes(tree, meant)
        yield from self._merged_inodes(tree, meant)

    def _split_inodes(self, tree: Tree, meant: dict[str, frozenset[int]]) -> Iterator[Broken]:
        """Names that can all stand only for one and the same inode, but are found as names of two inodes."""
        first_names: dict[int, str] = {}
        for path, inodes in meant.items():
            if len(inodes) == 1:
                first = first_names.setdefault(min(inodes), path)
                if tree[first].inode != tree[path].inode:
                    yield self._misidentified(first, path, "two inodes; they were names of one")

    def _merged_inodes(self, tree: Tree, meant: dict[str, frozenset[int]]) -> Iterator[Broken]:
        """Names that are found as names of one inode, although there is no inode that all of them can stand for."""
        known: dict[int, tuple[str, frozenset[int]]] = {}
        for path, inodes in meant.items():
            first, common = known.get(tree[path].inode, (path, inodes))
            if not common & inodes:
                yield self._misidentified(first, path, "one inode; they were two")
            known[tree[path].inode] = (first, common & inodes or inodes)

    def _misidentified(self, one: str, other: str, found: str) -> Broken:
        barrier = self._bindings.latest((one, other))
        return barrier.count, other, f"{self._bindings.describe(barrier)}, but {one} and {other} are {found}"

    # Inodes that must be somewhere

    def lost(self, tree: Tree, could_be: Callable[[int, Entry], bool]) -> Iterator[Broken]:
        """Inodes that had a durable name, lost it at most by moving, and are nowhere. `could_be` judges an entry.

        One thing that is found is not two inodes, even if it could be either.
        """
        if not self.kept:
            return
        places: dict[int, list[str]] = {}
        for path in tree:
            for inode in self._bindings.inodes(path):
                places.setdefault(inode, []).append(path)

        @cache
        def is_there(inode: int, path: str) -> bool:
            return could_be(inode, tree[path]) and self._has_entries(inode, path, tree)

        found = {}
        for kept in self.kept:
            if any(is_there(kept.inode, path) for path in places.get(kept.inode, ())):
                found[kept.inode] = places[kept.inode]
            else:
                yield kept.barrier.count, kept.path, self._lost(kept)
        yield from self._lost_to_another(tree, found, is_there)

    def _has_entries(self, directory: int, path: str, tree: Tree) -> bool:
        """Whether `path` has every name that the directory certainly has. Always true for files."""
        return all(within(path, name) in tree for name in self._certain_of(directory))

    def _lost_to_another(self, tree: Tree, places: dict[int, list[str]], could_be: CouldBe) -> Iterator[Broken]:
        """An inode that is there only as what must be another one. `places` has where each can be."""
        inode = unmatched(tree, places, could_be)
        for kept in self.kept:
            if kept.inode == inode:
                paths = (path for path in places[inode] if could_be(inode, path))
                yield kept.barrier.count, kept.path, self._lost(kept) + mistaken_for_another(paths)

    def _lost(self, kept: KeptInode) -> str:
        names = " or ".join(self._names_since(kept))
        return f"{self._bindings.describe(kept.barrier)}, but what was {kept.path} then is not there as {names}"

    def _names_since(self, kept: KeptInode) -> list[str]:
        """The names that the inode has had since it was durable, in their order."""
        trees = self._bindings.history.possible_trees(kept.barrier.count)
        return list(dict.fromkeys(name for tree in trees for name in tree.names(kept.inode)))

    def _kept(self) -> Iterator[KeptInode]:
        """Inodes that may have moved: no entry certain to be found stands for them alone."""
        found: dict[int, KeptInode | None] = {ROOT_INODE: None}
        for inode, links in sorted(self._bindings.inode_history.links.items()):
            if any(inode in self._bindings.stands_for(link) for link in links):
                self._find(inode, found)
        yield from filter(None, found.values())

    def _find(self, inode: int, found: dict[int, KeptInode | None]) -> bool:
        """Whether the inode is certain to be found. Adds to `found` what that depends on."""
        if inode in found:
            return True
        alone = [
            link for link in self._bindings.inode_history.links[inode] if self._bindings.stands_for(link) == {inode}
        ]
        if any(self._find(link.directory, found) for link in alone):
            found[inode] = None
            return True
        for barrier, path in self._anchors(inode):
            found[inode] = KeptInode(inode, path, barrier)
            return True
        return False

    def _anchors(self, inode: int) -> Iterator[tuple[Barrier, str]]:
        """Barriers that made a name of the inode durable that it can have lost since only by moving, latest first.

        The search ends at the latest barrier that made everything durable: a name that has lasted since an earlier
        barrier was durable at this one too.
        """
        inode_history = self._bindings.inode_history
        for barrier in reversed(self._bindings.barriers):
            for link, path in inode_history.paths(inode, barrier.count):
                if self._is_durable(path, barrier.count) and self._lasts(link, barrier.count):
                    yield barrier, path
            if barrier.is_everything:
                return

    def _is_durable(self, path: str, count: int) -> bool:
        """Whether `path`, of the tree after `count` operations, was durable by then, and all names on the way to it."""
        tree = self._bindings.history.trees[count]
        for link in (link_of(tree, name) for name in chain(path)):
            settled = [barrier.count for barrier in self._bindings.settling(link.directory) if barrier.count <= count]
            bound = self._bindings.inode_history.bound(link, settled[-1], count)
            if len(bound) != 1 or None in bound:
                return False
        return True

    def _lasts(self, link: Link, count: int, seen: frozenset[int] = frozenset({ROOT_INODE})) -> bool:
        """Whether every operation after the first `count` that takes away what the entry stands for moves it.

        No operation may take away a directory above the entry either, then or later. Those in `seen` are checked
        already.
        """
        inode_history = self._bindings.inode_history
        while True:
            if link.directory not in seen:
                seen |= {link.directory}
                above = [found for found, _ in inode_history.paths(link.directory, count)]
                if not above or not self._lasts(above[0], count, seen):
                    return False
            other = inode_history.first_other(link, count)
            if other is None or other > self._bindings.history.started:
                return True
            moved = inode_history.moved_to(link, other)
            if moved is None or (moved.directory != link.directory and self._is_split(link.directory, other)):
                return False
            link, count = moved, other

    def _is_split(self, directory: int, count: int) -> bool:
        """Whether the old directory was made durable by itself after `count` operations: the new one may not be."""
        return any(b.count > count and not b.is_everything for b in self._bindings.settling(directory))
