"""What each directory entry stood for, and what each inode was, after each number of operations of a workload.

These are about inodes, not names: simulated inodes have one number in all trees of a workload. A directory entry
belongs to its directory's inode, whatever the path of the directory is at the time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Generic, TypeVar

from postcrash.checkers.links import Link, link_of, links, within
from postcrash.model import Entry, EntryType, History, Naming, Tree, Workload
from postcrash.model.simulate import ROOT_INODE
from postcrash.model.tree import ROOT_PATH

T = TypeVar("T")
_MISSING: frozenset[int | None] = frozenset({None})


@dataclass(slots=True)
class _Changes(Generic[T]):
    """The values of one thing over time: `values[k]` from the tree number `counts[k]` on."""

    counts: list[int]
    values: list[T]

    def add(self, count: int, value: T) -> None:
        """Add the last change."""
        self.counts.append(count)
        self.values.append(value)

    def between(self, first: int, last: int) -> list[T]:
        """What it is in the trees from `first` to `last` (no less), in order.

        If it is nothing in `first`, this begins with what it is later.
        """
        place = max(bisect_right(self.counts, first) - 1, 0)
        return self.values[place : bisect_right(self.counts, last)]


class InodeHistory:
    """The history of all directory entries and inodes of one workload.

    Only changes are kept, each with the number of operations after which it first holds. `links` has, for each inode,
    the entries that it ever had. `entries` has the entries that each directory ever had.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.trees = History(workload, 0, 0).trees
        self.links: dict[int, list[Link]] = defaultdict(list)
        self.entries: dict[int, list[Link]] = defaultdict(list)
        self._bound: dict[Link, _Changes[int | None]] = defaultdict(lambda: _Changes([-1], [None]))
        self._states: dict[int, _Changes[Entry]] = defaultdict(lambda: _Changes([], []))
        known: dict[Link, int] = {}
        for count, tree in enumerate(self.trees):
            if count == 0 or tree is not self.trees[count - 1]:
                known = self._add(count, tree, known)
        for inode in self._states:
            self.links[inode]  # so that no look-up adds one while another thread goes through them

    def _add(self, count: int, tree: Tree, known: dict[Link, int]) -> dict[Link, int]:
        now = links(tree)
        for link in sorted({link for link, _ in known.items() ^ now.items()}):
            inode = now.get(link)
            if link not in self._bound:
                self.entries[link.directory].append(link)
            self._bound[link].add(count, inode)
            if inode is not None and link not in self.links[inode]:
                self.links[inode].append(link)
        for entry in (*(tree[path] for path in tree.paths()), *tree.held.values()):
            states = self._states[entry.inode]
            if not states.values or _what(states.values[-1]) != _what(entry):
                states.add(count, entry)
        return now

    def bound(self, link: Link, first: int, last: int) -> frozenset[int | None]:
        """What the entry stands for in the trees from `first` to `last`. None stands for a missing entry."""
        return frozenset(self._bound[link].between(first, last)) if link in self._bound else _MISSING

    def first_other(self, link: Link, count: int) -> int | None:
        """After how many operations the entry first stands for something else than after `count` operations."""
        (inode,) = self.bound(link, count, count)
        bound = self._bound.get(link, _Changes([], []))
        later = zip(bound.counts, bound.values, strict=True)
        return next((number for number, other in later if number > count and other != inode), None)

    def taken_away(self, link: Link, count: int, inode: int | None = None) -> int | None:
        """The index of the operation that, among the first `count`, last took away what the entry stood for.

        With `inode`, it must have been this one. None if there is no such operation.
        """
        bound = self._bound.get(link, _Changes([], []))
        changes = zip(bound.counts[1:], pairwise(bound.values), strict=True)
        found = [
            number - 1
            for number, (old, _) in changes
            if number <= count and (old is not None if inode is None else old == inode)
        ]
        return found[-1] if found else None

    def paths(self, inode: int, count: int) -> Iterator[tuple[Link, str]]:
        """The entries that stand for the inode after `count` operations, with the path of each."""
        if inode == ROOT_INODE:
            return
        for link in self.links[inode]:
            if self.bound(link, count, count) == {inode}:
                above = [path for _, path in self.paths(link.directory, count)]
                yield link, f"{above[0]}/{link.name}" if above else link.name

    def paths_ever(self, directory: int, count: int, below: frozenset[int] = frozenset()) -> set[str]:
        """All paths that the directory can have been found under in the first `count` operations, in any mixture.

        `below` are the directories that are under it on this way. It cannot be in one of them.
        """
        if directory == ROOT_INODE:
            return {ROOT_PATH}
        below |= {directory}
        return {
            within(folder, link.name)
            for link in self.links[directory]
            if link.directory not in below and directory in self.bound(link, 0, count)
            for folder in self.paths_ever(link.directory, count, below)
        }

    def has_name(self, inode: int, first: int, last: int) -> bool:
        """Whether the inode, if the tree `first` has it, has a name in a tree from there to `last`."""
        if inode == ROOT_INODE or self._states[inode].counts[0] > first:
            return inode == ROOT_INODE
        return any(inode in self.bound(link, first, last) for link in self.links[inode])

    def type(self, inode: int) -> EntryType:
        """The type of the inode."""
        return self._states[inode].values[0].type

    def states(self, inode: int, first: int, last: int) -> list[Entry]:
        """What the inode is in the trees from `first` to `last`, under any one name. Each state comes once, in order.

        An inode with neither name nor handle stays as it was last.
        """
        return self._states[inode].between(first, last)

    def moved_to(self, link: Link, count: int) -> Link | None:
        """The entry to which operation number `count` moves what `link` stood for. None if it does not move it."""
        operation = self.workload.operations[count - 1]
        if operation.form.naming not in (Naming.MOVE, Naming.SWAP):
            return None
        before, after = self.trees[count - 1], self.trees[count]
        if link_of(before, operation.path) == link:
            return link_of(after, operation.to)
        if operation.form.naming is Naming.SWAP and link_of(before, operation.to) == link:
            return link_of(after, operation.path)
        return None


def _what(entry: Entry) -> tuple[object, ...]:
    return entry.type, entry.size, entry.segments, entry.xattrs, entry.target


@lru_cache(maxsize=64)
def inode_history(workload: Workload) -> InodeHistory:
    """The history of a workload, computed once."""
    return InodeHistory(workload)
