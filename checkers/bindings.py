"""The inodes that each name of a history can stand for after a crash, and the inodes that certainly have a name.

The following make the entries of directories durable, as the entries are at that time:

- the set-up, which is durable as a whole before recording starts: all entries;
- a returned sync or syncfs: all entries;
- a returned fsync of a directory: its entries.

So the latest of these barriers settles an entry: after a crash the entry can only stand for what it stood for then or
later, and it can only be missing if it was missing then or later. The order in which later operations reach the disk is
not restricted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from postcrash.checkers.inode_history import inode_history
from postcrash.checkers.links import Link, chain
from postcrash.model import History, Operation, Persistence
from postcrash.model.simulate import ROOT_INODE
from postcrash.model.tree import ROOT_PATH, parent
from postcrash.properties.wording import operation_at

Inodes = frozenset[int | None]
"""A set of inodes. None in it means that the entry may be missing."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """A point that made something durable: the set-up's end (`operation` is None) or a returned persistence operation.

    `count` operations, this one included, had been done then, so `trees[count]` is what it made durable. `inode` is the
    inode that it made durable; None stands for everything.
    """

    count: int
    operation: Operation | None
    inode: int | None

    @property
    def is_everything(self) -> bool:
        """Whether the barrier made everything durable that existed."""
        return self.inode is None

    @property
    def persistence(self) -> Persistence | None:
        """What the barrier made durable. The end of the set-up does what sync does."""
        return self.operation.form.persistence if self.operation else Persistence.EVERYTHING

    def settles(self, directory: int | None) -> bool:
        """Whether the barrier makes the entries of the directory durable."""
        is_of_names = self.persistence is not None and self.persistence.covers_names
        return self.is_everything or (is_of_names and self.inode == directory)


class Bindings:
    """The entries of one history's directories, and what had been made durable.

    `barriers` are the set-up's end and the persistence operations that had returned, in order. There are none before
    recording began.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.inode_history = inode_history(history.workload)
        self.barriers = tuple(_barriers(history))
        everything = tuple(barrier for barrier in self.barriers if barrier.is_everything)
        synced = {barrier.inode for barrier in self.barriers if barrier.persistence is Persistence.FILE}
        self._everything = everything
        self._settling = {inode: tuple(b for b in self.barriers if b.settles(inode)) for inode in synced}
        self._stands_for: dict[Link, Inodes] = {}
        self._inodes: dict[str, frozenset[int]] = {ROOT_PATH: frozenset({ROOT_INODE})}

    def describe(self, barrier: Barrier) -> str:
        """For messages: `fsync A (operation 5) had returned`."""
        if barrier.operation is None:
            return "the set-up was durable"
        return f"{operation_at(self.history.workload, barrier.count - 1)} had returned"

    def fsyncs(self) -> Iterator[tuple[Barrier, int]]:
        """The returned fsyncs of files and directories, in order, with the inode of each.

        A write with O_SYNC is one of them, open(2): "as though each write(2) was followed by a call to fsync(2)".
        """
        for barrier in self.barriers:
            is_fsync = barrier.operation is not None and barrier.operation.form.fsyncs
            if is_fsync and barrier.inode is not None and self.inode_history.type(barrier.inode) in ("file", "dir"):
                yield barrier, barrier.inode

    def settling(self, directory: int) -> tuple[Barrier, ...]:
        """The barriers that made the entries of the directory durable, in order. The set-up is one of them."""
        return self._settling.get(directory, self._everything)

    def stands_for(self, link: Link) -> Inodes:
        """What the entry can stand for after a crash. None is in it if the entry can be missing."""
        if link not in self._stands_for:
            settled = self.settling(link.directory)[-1].count
            self._stands_for[link] = self.inode_history.bound(link, settled, self.history.started)
        return self._stands_for[link]

    def inodes(self, path: str) -> frozenset[int]:
        """What `path` can stand for if it is found after a crash. Empty if it cannot be found."""
        if path not in self._inodes:
            name = path.rpartition("/")[2]
            found = Inodes().union(*(self.stands_for(Link(inode, name)) for inode in self.inodes(parent(path))))
            self._inodes[path] = frozenset(inode for inode in found if inode is not None)
        return self._inodes[path]

    def directories(self, path: str) -> list[int]:
        """What `path` can stand for if a crash leaves a directory there, in the order of their numbers."""
        return sorted(inode for inode in self.inodes(path) if self.inode_history.type(inode) == "dir")

    def entries(self, path: str) -> list[Link]:
        """The directory entries that `path` can be, one for each directory that can be above it."""
        return [Link(directory, path.rpartition("/")[2]) for directory in self.directories(parent(path))]

    def latest(self, paths: Iterable[str]) -> Barrier:
        """The latest barrier that settled an entry on the way to one of the paths. There must be one."""
        directories = {link.directory for path in paths for name in chain(path) for link in self.entries(name)}
        return max((self.settling(directory)[-1] for directory in directories), key=lambda barrier: barrier.count)

    def is_only_entry(self, link: Link, inode: int) -> bool:
        """Whether nothing that had started gave the inode another entry, or this one is certain to stand for it."""
        if self.stands_for(link) == {inode}:
            return True
        others = (other for other in self.inode_history.links[inode] if other != link)
        return not any(inode in self.inode_history.bound(other, 0, self.history.started) for other in others)

    def certain(self, link: Link) -> Barrier | None:
        """The first barrier that promised that the entry exists, whatever it stands for. None if none did."""
        return self._since(link, lambda found: None not in found)

    def gone(self, link: Link) -> Barrier | None:
        """The first barrier that promised that an entry that once existed is gone. None if none did."""
        found = self._since(link, lambda found: found == {None})
        return found if found and self.inode_history.bound(link, 0, found.count) != {None} else None

    def _since(self, link: Link, is_so: Callable[[Inodes], bool]) -> Barrier | None:
        """The first barrier since which `is_so` holds for what the entry stands for."""
        if not is_so(self.stands_for(link)):
            return None
        started = self.history.started
        return next(b for b in self.settling(link.directory) if is_so(self.inode_history.bound(link, b.count, started)))

    def promised(self, path: str) -> Barrier | None:
        """The barrier that promised that `path` exists if its directory does. None if none did.

        If its directory is promised too, this is the latest of the barriers that together promise the path.
        """
        promises = [self._promise_of(name) for name in chain(path)]
        return max(filter(None, promises), key=lambda barrier: barrier.count) if promises[-1] else None

    def _promise_of(self, path: str) -> Barrier | None:
        """The barrier that promised the name at the end of `path`, in every directory that its parent can be."""
        found = list(map(self.certain, self.entries(path)))
        promised = [barrier for barrier in found if barrier is not None]
        is_whole = bool(found) and len(promised) == len(found)
        return max(promised, key=lambda barrier: barrier.count) if is_whole else None


@lru_cache(maxsize=256)
def bindings_of(history: History) -> Bindings:
    """The entries of a history, computed once for all judges."""
    return Bindings(history)


def _barriers(history: History) -> Iterator[Barrier]:
    first = len(history.workload.setup)
    if history.returned < first:
        return
    yield Barrier(first, None, None)
    for count, operation in enumerate(history.returned_operations[first:], first + 1):
        if operation.form.persistence is Persistence.EVERYTHING:
            yield Barrier(count, operation, None)
        elif operation.form.persistence:
            yield Barrier(count, operation, history.trees[count][operation.path].inode)
