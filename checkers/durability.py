"""Everything that fsync, fdatasync, msync, sync, syncfs, O_SYNC and O_DSYNC promised is there.

These operations promise the following, once they have returned:

- fsync of a file: its contents, size and attributes. fsync(2): "all modified in-core data of […] the file", and that
  this "does not necessarily ensure that the entry in the directory containing the file has also reached disk".
- fsync of a directory: the names in it, and that names taken from it are gone. fsync(2): for the entry "an explicit
  fsync() on a file descriptor for the directory is also needed".
- fdatasync: contents and size. fdatasync(2): metadata that "is needed in order to allow a subsequent data retrieval to
  be correctly handled", such as the size.
- msync with MS_SYNC: what was stored through a mapping. msync(2); POSIX msync(): data integrity completion.
- a write with O_SYNC or O_DSYNC: its own bytes, and that the file reaches to their end. open(2): "By the time write(2)
  returns, the output data and associated file metadata have been transferred"; with O_DSYNC the metadata "that would
  be required to retrieve that data".
- sync, syncfs: everything at that point. sync(2): on Linux "the same guarantees as fsync() called on every file in the
  system or filesystem".
- the end of the set-up: everything, because recording starts once it is durable.

The environment events writeback, commit and checkpoint promise nothing. An operation in progress does not either.

The checker compares a tree with all simulated trees from the promise on, because later operations may or may not have
reached the disk, in any order. It follows an inode, not a name, so a file has to hold what was promised as long as it
exists, under whichever name. These are the rules:

- A name must be there if a directory was made durable with it, every later tree has it there, and the directory is
  found. Replacing a name by rename or exchange never makes it missing: rename(2), "there is no point at which another
  process attempting to access newpath will find it missing".
- A name must be gone if it was taken from a directory before the directory was made durable, and the directory is
  found.
- An inode that had a durable name and was only renamed since must be found, under its old name or a new one: the rename
  takes the old name away by giving the new one. The same holds for the directories above it. A directory that lacks a
  name which the durable one certainly has is another one.
- Two names must be found as names of one inode if each can stand for this inode only. They must be found as names of
  two inodes if there is no inode that both can stand for.
- The file found under a name must be as was promised of an inode that the name can stand for. Its size must lie between
  those of the later states, and each promised byte must come from where it comes from in one of these states.

The checker does not check the following. Each has its case in tests/unit/checkers/test_exclusions.py, which would be a
false alarm:

- a file that was moved to another directory, once its old directory was made durable and the new one was not: it could
  be missing from both. No document promises the new name then;
- a file if a later operation removes or replaces its only durable name, or removes its directory after the file has
  left it: no document orders the two operations;
- contents of a file that had no name any more when it was flushed through a handle: nobody expects to find it again;
- which of the files that a name can stand for was found, if it keeps the promises of one of them;
- bytes beyond the promised size;
- zero and stale bytes in a hole, or past an end, that a later operation fills: blocks may be there before their data;
- bytes that collapse-range or insert-range moves, once a later write has overwritten them in place: if the shift is
  lost and the write is not, the new bytes stand where the old ones stood. No document orders the two;
- zero bytes behind the end that a later operation gives the file, up to the end of that block: ext4 and f2fs write them
  before they move the end. In blocks behind it, nobody has a reason to write zeros;
- entries of a directory after fdatasync of it, which promises none (`Persistence.covers_names`);
- permission bits, which file systems without them make up.

`link-counts` checks the number of links. Time stamps and preallocated blocks are not observed.
"""

from collections.abc import Iterator
from functools import lru_cache

from postcrash.checkers.bindings import bindings_of
from postcrash.checkers.checker import Checker
from postcrash.checkers.names import Broken, NameObligations
from postcrash.checkers.obligations import Contents
from postcrash.model import History, Observation, Tree
from postcrash.model.judge import Opinion, holds, violated


class Durability(Checker):
    """Persistence operations keep their promises."""

    name = "durability"
    statement = "What a returned fsync, fdatasync, msync, sync, syncfs, O_SYNC or O_DSYNC write promised is there."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first promise that is broken: names first, then contents, each in the order in which they were made."""
        obligations = _obligations(history)
        if broken := obligations.broken_by(observation.tree):
            return violated(broken[2], broken[1])
        return holds(relevant=obligations.concern(observation.tree))


class _Obligations:
    """All obligations by the time of one history: those about names, and those about what files hold."""

    def __init__(self, history: History) -> None:
        bindings = bindings_of(history)
        self._names = NameObligations(bindings)
        self._contents = Contents(bindings)
        self.is_any = bool(bindings.barriers) and (self._names.is_any or self._contents.is_any)

    def broken_by(self, tree: Tree) -> Broken | None:
        """The first promise that `tree` breaks, of the first kind with a broken promise."""
        if not self.is_any:
            return None
        kinds = (
            self._names.missing(tree),
            self._names.reappeared(tree),
            self._spoilt(tree),
            self._names.misidentified(tree),
        )
        return next((min(found) for found in map(list, kinds) if found), None) or min(
            self._names.lost(tree, self._contents.could_be), default=None
        )

    def concern(self, tree: Tree) -> bool:
        """Whether something was promised about names, or about what is behind a name that is there."""
        if not self.is_any:
            return False
        return self._names.is_any or any(self._contents.concern(path, entry) for path, entry in tree.items())

    def _spoilt(self, tree: Tree) -> Iterator[Broken]:
        for path, entry in tree.items():
            broken = self._contents.broken(path, entry)
            if broken:
                yield broken[0], path, broken[1]


@lru_cache(maxsize=256)
def _obligations(history: History) -> _Obligations:
    return _Obligations(history)
