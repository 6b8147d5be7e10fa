"""The inodes that a name can stand for after a crash: those that had it, unless it was durably taken from them."""

from collections.abc import Mapping
from functools import lru_cache

from postcrash.checkers.bindings import bindings_of
from postcrash.checkers.inodes import Past, pasts
from postcrash.model import History
from postcrash.model.tree import parent


class Candidates:
    """The inodes that each name of one history can stand for after a crash, with the past of each."""

    def __init__(self, history: History) -> None:
        self._bindings = bindings_of(history)
        self._pasts = pasts(history)

    def ever(self, path: str) -> Mapping[int, Past]:
        """All inodes that ever had the name. Empty if nothing made it."""
        return self._pasts.of(path)

    def now(self, path: str) -> Mapping[int, Past]:
        """The inodes of `ever` that the name can still stand for: no durable operation took it from them.

        Empty if the name must be gone. All of `ever` if nothing was made durable, or if the directory of the name must
        be gone.
        """
        ever = self.ever(path)
        if not self._bindings.barriers or not self._bindings.directories(parent(path)):
            return ever
        return {inode: ever[inode] for inode in sorted(self._bindings.inodes(path))}

    def is_gone(self, path: str) -> bool:
        """Whether the name was durably removed from its directory. `durability` reports it if it is there."""
        return any(map(self._bindings.gone, self._bindings.entries(path)))

    def settled(self, path: str) -> str:
        """For messages: what limits the name to these inodes, `fsync D (operation 5) had returned`."""
        return self._bindings.describe(self._bindings.latest([path]))


@lru_cache(maxsize=256)
def candidates(history: History) -> Candidates:
    """The candidates of a history, computed once."""
    return Candidates(history)
