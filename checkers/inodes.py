"""What each inode of a history ever was, and which inodes a name found after a crash can stand for.

Directories are followed through renames: a file made in a renamed directory may show under the directory's old name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from postcrash.checkers.inode_history import InodeHistory, inode_history
from postcrash.checkers.links import Link
from postcrash.checkers.shifts import displaced
from postcrash.model import EntryType, History, Segment, Workload
from postcrash.model.simulate import ROOT_INODE
from postcrash.model.tree import ROOT_PATH


@dataclass(slots=True)
class Past:
    """All states that an inode ever had, merged.

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
        """Add the states of another inode."""
        self.types |= other.types
        self.size = max(self.size, other.size)
        self.targets |= other.targets
        self.xattrs |= other.xattrs
        self.written |= other.written


class Pasts:
    """The past of every name that the first `started` operations of a workload made."""

    def __init__(self, known: InodeHistory, started: int) -> None:
        self._inode_history = known
        self._started = started
        self._known: dict[int, Past] = {}
        self._of: dict[str, dict[int, Past]] = {}

    def of(self, path: str) -> Mapping[int, Past]:
        """What each inode was that `path` can stand for, in the order of their numbers. Empty if nothing made the name.

        What is found under the name is one of these inodes. It has nothing of another one.
        """
        if path not in self._of:
            self._of[path] = {inode: self._past(inode) for inode in sorted(self._inodes(path))}
        return self._of[path]

    def _inodes(self, path: str) -> set[int]:
        inodes = {ROOT_INODE}
        for name in path.split("/") if path != ROOT_PATH else ():
            made = (self._inode_history.bound(Link(directory, name), 0, self._started) for directory in inodes)
            inodes = {inode for each in made for inode in each if inode is not None}
        return inodes

    def _past(self, inode: int) -> Past:
        if inode not in self._known:
            past, states = Past(), self._inode_history.states(inode, 0, self._started)
            for entry in states:
                past.add(Past({entry.type}, entry.size, {entry.target}, set(entry.xattrs), set(entry.segments)))
            past.written |= displaced(self._inode_history.workload, (entry.segments for entry in states))
            self._known[inode] = past
        return self._known[inode]


def union(pasts_of_inodes: Iterable[Past]) -> Past:
    """All states of all these inodes, merged."""
    whole = Past()
    for past in pasts_of_inodes:
        whole.add(past)
    return whole


def pasts(history: History) -> Pasts:
    """The pasts of a history. They are computed once, because it makes no difference which operations had returned."""
    return _pasts(history.workload, history.started)


@lru_cache(maxsize=256)
def _pasts(workload: Workload, started: int) -> Pasts:
    return Pasts(inode_history(workload), started)
