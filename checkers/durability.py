"""What fsync, fdatasync, msync, sync, syncfs, O_SYNC and O_DSYNC promised is there.

Who promises what, once it has returned:

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
- the end of the set-up: everything, for recording starts once it is durable.

The environment events writeback, commit and checkpoint promise nothing. Neither does an operation still in progress.

What is held against the file system: a tree is compared with all simulated trees from the promise on, for later
operations may have reached the disk or not.

- A name must be there if it, and every directory on the way to it, was durable (bindings.py), and every later tree has
  it in the same directories. Replacing a name by rename or exchange never makes it missing: rename(2), "there is no
  point at which another process attempting to access newpath will find it missing".
- A name must be gone if it was taken from a durable directory before that, or everything, was made durable.
- If the name is there, its size must lie between those of the later trees, and each promised byte must come from where
  one of them has it from. For this the name need not be durable, but it must be unmistakable: in no order of the
  operations could it be another file's.

Not checked, because it would not be certain:

- contents of a name that a later operation removes, replaces or moves, and whatever lies beyond the promised size;
- a file that is found under a name that is neither durable nor unmistakable, and a file moved between directories of
  which one was fsynced only (it could be missing from both);
- zero and stale bytes in a hole, or past an end, that a later operation fills: blocks may be there before their data;
- link counts, permission bits, time stamps, preallocated blocks.
"""

from functools import lru_cache

from postcrash.checkers.bindings import Bindings
from postcrash.checkers.checker import Finding
from postcrash.checkers.promises import Promise, contents_promised, names_promised
from postcrash.model import History, Observation


class Durability:
    """Persistence operations keep their promises."""

    name = "durability"
    statement = "What a returned fsync, fdatasync, msync, sync, syncfs, O_SYNC or O_DSYNC write promised is there."

    def check(self, history: History, observation: Observation) -> Finding | None:
        """The first promise that is broken: names first, then contents, each in the order in which they were made."""
        if observation.mount_errno:
            return None
        for promise in _promises(history):
            message = promise.broken_by(observation.tree)
            if message:
                return Finding(self.name, message, promise.path)
        return None


@lru_cache(maxsize=256)
def _promises(history: History) -> tuple[Promise, ...]:
    bindings = Bindings(history)
    return (*names_promised(bindings), *contents_promised(bindings))
