"""A file that was fsynced is found under the names that it had then.

fsync(2) promises no name. But file systems with a journal or a log make the names of an inode durable with the inode,
and fstests expects this of them. properties/practice.toml has the numbers of the tests, and the file systems of which
this is expected.

The checker checks the names that the file had when fsync returned. It checks each name as long as no operation that had
started takes it away. Each directory above the name must be new and must never have had another name, or it must be
certain to be found under its name. If documents promise a name and all directories above it, `durability` checks them.

Not checked: which file the name stands for if a later operation replaces it, and the contents, because `durability`
follows the inode.
"""

from collections.abc import Iterator
from functools import lru_cache

from postcrash.checkers.bindings import Barrier, Bindings
from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.links import Link, chain, link_of
from postcrash.model import EntryType, History, Observation, Persistence


class FsyncNames:
    """fsync of a file persists its names."""

    name = "fsync-names"
    statement = "A file is found under each name that it had when an fsync of it returned."
    depends_on: tuple[str, ...] = ("started", "returned")
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first name of the first fsync that is missing or does not stand for a file."""
        for path, types, said in _names(history):
            entry = observation.tree.get(path)
            if entry is None or entry.type not in types:
                found = "is missing" if entry is None else f"is a {entry.type}"
                return Objection(self.name, f"{said}, but {path} {found}", path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether a file was fsynced under a name that no document promises."""
        return bool(_names(history))


_Name = tuple[str, frozenset[EntryType], str]
"""A path that must exist, the types that it can have, and the reason."""


@lru_cache(maxsize=256)
def _names(history: History) -> tuple[_Name, ...]:
    bindings = Bindings(history)
    found: dict[str, _Name] = {}
    for barrier in bindings.barriers:
        if barrier.persistence is not Persistence.FILE or barrier.inode is None:
            continue
        if bindings.lives.type(barrier.inode) == "file":
            for path, types in _lasting(bindings, barrier):
                found.setdefault(path, (path, types, bindings.said(barrier)))
    return tuple(name for path, name in found.items() if not all(map(bindings.promised, chain(path))))


def _lasting(bindings: Bindings, barrier: Barrier) -> Iterator[tuple[str, frozenset[EntryType]]]:
    """The names that the file had then and that nothing has taken away since, with the types that they can have."""
    assert barrier.inode is not None
    tree, lives, started = bindings.history.trees[barrier.count], bindings.lives, bindings.history.started
    for link, path in lives.paths(barrier.inode, barrier.count):
        above = [link_of(tree, name) for name in chain(path)][:-1]
        bound = lives.bound(link, barrier.count, started)
        if None not in bound and all(_stays(bindings, each, barrier.count) for each in above):
            yield path, frozenset(lives.type(inode) for inode in bound if inode is not None)


def _stays(bindings: Bindings, link: Link, count: int) -> bool:
    """Whether the directory that the entry stands for after `count` operations has no other name to be found under."""
    lives, started = bindings.lives, bindings.history.started
    now = lives.bound(link, count, started)
    (directory, *others) = now
    if others or directory is None:
        return False
    return bindings.standing(link) == now or lives.links[directory] == [link]
