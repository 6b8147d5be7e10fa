"""Trees of files: what a file system shows, whether simulated or observed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from postcrash.model.choices import UndecidedBytes
from postcrash.model.operation import HANDLE
from postcrash.model.segments import Segment, Segments

EntryType = Literal["file", "dir", "symlink", "fifo", "socket", "char", "block", "other"]
ROOT_PATH = "."
MADE_BY_MKFS = frozenset({"lost+found"})
"""Names in the root directory that mke2fs(8) and mkfs.f2fs(8) put there."""

_DELTA_MAX = 64
UNREAD = "error:"
"""Begins the source of bytes that could not be read. The errno follows."""


class Unread(NamedTuple):
    """What could not be read, with the errno: a whole entry or, if `end` is set, its bytes from `start` up to there."""

    path: str
    errno: int
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a tree.

    path      relative to the mount point; the root directory is `.`; or the handle of an open file
    mode      permission bits
    nlink     number of hard links; None if it is not known (directories of simulated trees)
    inode     equal numbers in one tree are hard links of one inode
    size      bytes of a file; 0 for everything else
    segments  the content of a file, in order and, together with `choices`, without gaps; empty unless it is a file
    xattrs    pairs of name and value (in hexadecimal), sorted by name
    target    of a symbolic link; for a device its number, such as 1:3
    hash      of a file's content as the agent saw it; empty in simulated trees
    error     errno of an entry that could not be read, else 0; the fields that could not be read have their defaults
    choices   stretches of a file that one recovery did not settle; in order; only in observed trees
    is_linkable  it never had a name, and may be given one (O_TMPFILE); only in simulated trees
    """

    path: str
    type: EntryType
    mode: int = 0
    nlink: int | None = None
    inode: int = 0
    size: int = 0
    segments: Segments = ()
    xattrs: tuple[tuple[str, str], ...] = ()
    target: str = ""
    hash: str = ""
    error: int = 0
    choices: tuple[UndecidedBytes, ...] = ()
    is_linkable: bool = False

    @property
    def unread(self) -> Unread | None:
        """The first part that could not be read: the whole entry, or bytes of a file. None if everything was read."""
        if self.error:
            return Unread(self.path, self.error)
        for start, end, source in self.segments:
            if source.startswith(UNREAD):
                return Unread(self.path, int(source.removeprefix(UNREAD)), start, end)
        return None


class Tree(Mapping[str, Entry]):
    """Entries by path. A tree is immutable and hashable; iteration gives each directory before its entries.

    A tree is a shared base and a small difference to it, so that a tree for each of 10,000 operations stays affordable.

    held  of simulated trees: the open files, by handle. Handles can be looked up as paths can (`tree["@F"]`), but
          iteration, counting and comparison skip them, because nobody sees them after a crash
    """

    __slots__ = ("_base", "_delta", "_length", "_names", "_unread", "held")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._base: dict[str, Entry] = {entry.path: entry for entry in entries}
        self._delta: dict[str, Entry | None] = {}
        self._length = len(self._base)
        self._unread: tuple[Unread | None, ...] = ()
        self._names: dict[int, list[str]] | None = None
        self.held: Mapping[str, Entry] = {}

    def changed(self, changes: Mapping[str, Entry | None]) -> "Tree":
        """The tree with the entries of `changes` put in. None takes the path or handle out."""
        if not changes:
            return self
        tree = Tree()
        handles = {name: entry for name, entry in changes.items() if name.startswith(HANDLE)}
        changes = {path: entry for path, entry in changes.items() if path not in handles}
        tree.held = {name: entry for name, entry in {**self.held, **handles}.items() if entry is not None}
        tree._base, tree._delta = self._base, {**self._delta, **changes}
        gained = sum(entry is not None for entry in changes.values())
        tree._length = len(self) + gained - sum(path in self for path in changes)
        if len(tree._delta) > _DELTA_MAX:
            tree._base, tree._delta = {path: tree[path] for path in tree.paths()}, {}
        return tree

    def paths(self) -> Iterator[str]:
        """The paths in no particular order, which is quicker than in sorted order."""
        yield from (path for path in self._base if path not in self._delta)
        yield from (path for path, entry in self._delta.items() if entry is not None)

    def places(self, other: "Tree") -> set[str]:
        """The paths at which the trees can differ. At all others, both have the same entry or none."""
        if self._base is other._base:
            return {*self._delta, *other._delta}
        return {*self.paths(), *other.paths()}

    @property
    def unread(self) -> Unread | None:
        """The first part that could not be read. None if everything was read. The search is done once."""
        if not self._unread:
            found = [unread for path in self.paths() if (unread := self[path].unread)]
            self._unread = (min(found, key=lambda unread: walk_order(unread.path), default=None),)
        return self._unread[0]

    def names(self, inode: int) -> list[str]:
        """All paths of one inode, sorted. The tree is gone through once for all inodes."""
        if self._names is None:
            names: dict[int, list[str]] = defaultdict(list)
            for path in sorted(self.paths()):
                names[self[path].inode].append(path)
            self._names = names  # whole, because other threads may have the same tree
        return [*self._names.get(inode, ())]

    def __getitem__(self, path: str) -> Entry:
        entry = self._delta[path] if path in self._delta else self._base.get(path, self.held.get(path))
        if entry is None:
            raise KeyError(path)
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.paths(), key=walk_order))

    def __len__(self) -> int:
        return self._length

    def __hash__(self) -> int:
        return hash(frozenset(self.values()))

    def __repr__(self) -> str:
        return f"Tree({list(self.values())!r})"


def is_one_folder(trees: Sequence[Tree], path: str) -> bool:
    """Whether the path means one folder in all trees, and this folder has no other path in any of them."""
    inodes = {tree[path].inode for tree in trees if path in tree}
    return len(inodes) == 1 and all(tree.names(inode) in ([], [path]) for tree in trees for inode in inodes)


def parent(path: str) -> str:
    """The directory that holds `path`. The root holds itself."""
    return path.rpartition("/")[0] or ROOT_PATH


def is_below(path: str, directory: str) -> bool:
    """Whether `path` is in the directory, at any depth. The root is not asked for."""
    return path.startswith(f"{directory}/")


def walk_order(path: str) -> tuple[str, ...]:
    """The key by which paths are sorted so that each directory comes before its entries."""
    return () if path == ROOT_PATH else tuple(path.split("/"))


__all__ = [
    "MADE_BY_MKFS",
    "ROOT_PATH",
    "Entry",
    "EntryType",
    "Segment",
    "Segments",
    "Tree",
    "Unread",
    "is_below",
    "is_one_folder",
    "parent",
    "walk_order",
]
