"""Which names persistence operations had made durable, and since when.

A name is bound durably once, with the binding unchanged since it was made, one of these was there:

- the set-up, which is durable as a whole before recording starts;
- a returned sync or syncfs;
- a returned fsync of the directory that holds the name.

A path is durable if every name on the way to it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from postcrash.checkers.links import Link, chain, link_of, links, parent
from postcrash.model import History, Operation, Tree
from postcrash.model.tree import ROOT_PATH
from postcrash.properties.wording import operation_at

_EVERYTHING = ("sync", "syncfs")


@dataclass(frozen=True, slots=True)
class Barrier:
    """A point that made something durable: the set-up's end (`operation` is None) or a returned persistence operation.

    `count` operations, this one included, had been done then; so `trees[count]` is what it saw.
    """

    count: int
    operation: Operation | None

    @property
    def is_everything(self) -> bool:
        """Whether it made durable all that was there."""
        return self.operation is None or self.operation.word in _EVERYTHING


@dataclass(frozen=True)
class Bindings:
    """The names of one history: all trees from set-up to what had been started, and what had been made durable."""

    history: History

    @cached_property
    def barriers(self) -> tuple[Barrier, ...]:
        """The set-up's end and the persistence operations that had returned, in order; none before recording began."""
        first = len(self.history.workload.setup)
        if self.history.returned < first:
            return ()
        recorded = list(enumerate(self.history.returned_operations))[first:]
        returned = [Barrier(index + 1, operation) for index, operation in recorded if operation.form.persistence]
        return (Barrier(first, None), *returned)

    @cached_property
    def _links(self) -> tuple[dict[Link, int], ...]:
        return tuple(links(tree) for tree in self.history.possible_trees(0))

    def trees(self, since: int) -> tuple[Tree, ...]:
        """The trees that a crash may show, where the first `since` operations are durable."""
        return self.history.possible_trees(since)

    def said(self, barrier: Barrier) -> str:
        """For messages: `fsync A (operation 5) had returned`."""
        if barrier.operation is None:
            return "the set-up was durable"
        return f"{operation_at(self.history.workload, barrier.count - 1)} had returned"

    def is_durable(self, path: str, count: int) -> bool:
        """Whether `path`, of the tree after `count` operations, was durable by then with every name on its way."""
        return all(self._binder(name, count) is not None for name in chain(path))

    def binder(self, path: str, count: int) -> Barrier:
        """The latest barrier that `path`, durable by then, owes that to. Raises `ValueError` if it is not durable."""
        found = [self._binder(name, count) for name in chain(path)]
        return max((barrier for barrier in found if barrier is not None), key=lambda barrier: barrier.count)

    def _binder(self, path: str, count: int) -> Barrier | None:
        """The first barrier that made the name at the end of `path` durable as it is bound after `count` operations."""
        earlier = (barrier for barrier in self.barriers if barrier.count <= count and covers(barrier, path))
        return next((barrier for barrier in earlier if self._is_same(path, barrier.count, count)), None)

    def _is_same(self, path: str, first: int, last: int) -> bool:
        """Whether `path` stands for one inode in one directory in all trees from `first` to `last`."""
        trees = self.history.trees[first : last + 1]
        return len({_bound(tree, path) for tree in trees}) == 1 and path in trees[0]

    def stays(self, path: str, since: int) -> bool:
        """Whether every tree that a crash may show has `path`, and has it in the same directories."""
        trees = self.trees(since)
        above = list(chain(parent(path)))
        return all(path in tree for tree in trees) and all(
            len({tree[directory].inode for tree in trees}) == 1 for directory in above
        )

    def is_steady(self, path: str, since: int, window: int) -> bool:
        """Whether the names on the way to `path` in the tree after `since` operations never stood for anything else.

        Looked at are all trees from the one after `window` operations on. Where that is so, a name that is found after
        a crash cannot be another file's, in whatever order operations reached the disk.
        """
        tree = self.history.trees[since]
        for name in chain(path):
            link = link_of(tree, name)
            if {names[link] for names in self._links[window:] if link in names} != {tree[name].inode}:
                return False
        return True


def covers(barrier: Barrier, path: str) -> bool:
    """Whether the barrier makes durable the name at the end of `path`, if it is there."""
    if barrier.is_everything:
        return True
    operation = barrier.operation
    return operation is not None and operation.word == "fsync" and operation.path == parent(path)


def _bound(tree: Tree, path: str) -> tuple[Link, int] | None:
    return (link_of(tree, path), tree[path].inode) if path in tree else None


def paths_ever(trees: tuple[Tree, ...]) -> Iterator[str]:
    """Every path of any of `trees` but the root, sorted."""
    yield from sorted({path for tree in trees for path in tree.paths()} - {ROOT_PATH})
