"""What each inode of a history ever was, and which inodes a name found after a crash can stand for.

Directories are followed through renames: a file made in a renamed directory may show under the directory's old name.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from postcrash.checkers.links import Link, links
from postcrash.checkers.shifts import displaced
from postcrash.model import EntryType, History, Segment, Tree, Workload
from postcrash.model.segments import Segments
from postcrash.model.simulate import ROOT_INODE
from postcrash.model.tree import ROOT_PATH


@dataclass(slots=True)
class Past:
    """Everything that an inode ever was.

    size     the largest that the file ever had, in bytes
    targets  of a symbolic link
    xattrs   pairs of name and value
    written  where its bytes came from, or come from if a shift is lost and a later write is not (`shifts.py`)
    """

    types: set[EntryType] = field(default_factory=set)
    size: int = 0
    targets: set[str] = field(default_factory=set)
    xattrs: set[tuple[str, str]] = field(default_factory=set)
    written: set[Segment] = field(default_factory=set)

    def add(self, other: "Past") -> None:
        """Add what another inode was."""
        self.types |= other.types
        self.size = max(self.size, other.size)
        self.targets |= other.targets
        self.xattrs |= other.xattrs
        self.written |= other.written


class Pasts:
    """The past of every name that operations made, those in progress included."""

    def __init__(self, workload: Workload, trees: Iterable[Tree]) -> None:
        self._made: dict[Link, set[int]] = defaultdict(set)
        self._pasts: dict[int, Past] = defaultdict(Past)
        contents: dict[int, list[Segments]] = defaultdict(list)
        for tree in trees:
            for link, inode in links(tree).items():
                self._made[link].add(inode)
            for entry in (*tree.values(), *tree.held.values()):
                seen = Past({entry.type}, entry.size, {entry.target}, set(entry.xattrs), set(entry.segments))
                self._pasts[entry.inode].add(seen)
                contents[entry.inode].append(entry.segments)
        for inode, states in contents.items():
            self._pasts[inode].written |= displaced(workload, states)

    def of(self, path: str) -> Past | None:
        """What the inodes that `path` can stand for were. None if no operation made the name."""
        inodes = {ROOT_INODE}
        for name in path.split("/") if path != ROOT_PATH else ():
            inodes = set[int]().union(*(self._made.get(Link(directory, name), set()) for directory in inodes))
        if not inodes:
            return None
        whole = Past()
        for inode in inodes:
            whole.add(self._pasts[inode])
        return whole


def pasts(history: History) -> Pasts:
    """The pasts of a history. They are computed once, because it makes no difference which operations had returned."""
    return _pasts(history.workload, history.started)


@lru_cache(maxsize=256)
def _pasts(workload: Workload, started: int) -> Pasts:
    return Pasts(workload, History(workload, started, started).possible_trees(0))
