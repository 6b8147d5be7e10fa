"""Whether what was found under a name can be what the name stands for by now, or only what it stood for before.

A barrier settles a name: after it the name stands for what it stood for then or later (`bindings.py`). Of an inode that
was never flushed nothing is promised. But what is found must still be one inode: one that the name can stand for, that
was so at some time, and that keeps what was promised of it.
"""

from collections.abc import Sequence

from postcrash.checkers.bindings import Bindings
from postcrash.checkers.inodes import Past, Pasts, pasts
from postcrash.checkers.links import chain, parent
from postcrash.checkers.origins import foreign, never, was
from postcrash.model import Entry
from postcrash.model.tree import ROOT_PATH
from postcrash.properties.wording import shown_bytes


class Former:
    """What the paths of one history stood for, and what they can still stand for."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._pasts: Pasts = pasts(bindings.history)

    @property
    def is_any(self) -> bool:
        """Whether a name stood for something that it cannot stand for any more, and stands for something else now."""
        lives, started = self._bindings.lives, self._bindings.history.started
        known = [link for entries in lives.entries.values() for link in entries]
        return any(lives.bound(link, 0, started) - self._bindings.standing(link) - {None} for link in known)

    def concerns(self, path: str) -> bool:
        """Whether `path` stood for something that it cannot stand for any more, and stands for something else now."""
        return 0 < len(self._bindings.inodes(path)) < len(self._pasts.of(path))

    def mistaken(self, path: str, entry: Entry, possible: Sequence[int]) -> str:
        """How `entry` differs from each of the `possible` inodes, but not from all that the path ever stood for.

        Empty if it can be a possible one. Empty too if it can be none at all, because then `never-written` or
        `foreign-bytes` objects, and if it cannot be read.
        """
        each = self._pasts.of(path)
        if len(each) < 2 or entry.error or any(was(each[inode], entry) for inode in possible):
            return ""
        if not any(was(past, entry) for past in each.values()):
            return ""
        different = [self._difference(each[inode], entry) for inode in possible]
        return different[0] if different else f"{path} is a {entry.type}"

    def _difference(self, past: Past, entry: Entry) -> str:
        if message := never(past, entry):
            return message
        stretch = foreign(past, entry)
        assert stretch is not None
        shown = shown_bytes(self._bindings.history.workload, entry.path, entry, *stretch)
        return f"{shown}; these were never in it"

    def settled(self, path: str) -> tuple[int, str]:
        """The latest barrier that settled a name on the way to `path`: after how many operations, and in words."""
        above = {ROOT_PATH, *chain(parent(path))}
        directories = {inode for name in above for inode in self._bindings.directories(name)}
        latest = (self._bindings.settling(inode)[-1] for inode in directories)
        barrier = max(latest, key=lambda barrier: barrier.count)
        return barrier.count, self._bindings.said(barrier)
