"""After a rename a file is under its old name or under its new one, never under both.

rename(2) says that there "will probably be a window in which both oldpath and newpath refer to the file being renamed".
File systems with a journal or a log commit a rename as a whole, and fstests expects it of them.
properties/practice.toml has the numbers of the tests, and the file systems that are held to it. That the file is under
one of the two names is for `durability`, where the old name was durable.

Not checked: names that a link gave to the file before the rename or after it.
"""

from collections.abc import Iterator
from functools import lru_cache

from postcrash.checkers.checker import Finding
from postcrash.model import History, Observation
from postcrash.properties.wording import operation_at


class OneName:
    """A rename moves a name, and never doubles it."""

    name = "one-name"
    statement = "What was renamed is not found under its old and its new name at once."
    depends_on: tuple[str, ...] = ("started",)

    def check(self, history: History, observation: Observation) -> Finding | None:
        """The first rename of which both names stand for one inode."""
        for number, old, new in _renames(history):
            one, other = observation.tree.get(old), observation.tree.get(new)
            if one is not None and other is not None and (one.inode, one.type) == (other.inode, other.type):
                said = operation_at(history.workload, number)
                return Finding(self.name, f"{said}: the same {one.type} is {old} and {new}", new)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Something was renamed, and it or what it replaced is there."""
        return any(old in observation.tree or new in observation.tree for _, old, new in _renames(history))


@lru_cache(maxsize=256)
def _renames(history: History) -> tuple[tuple[int, str, str], ...]:
    return tuple(_found(history))


def _found(history: History) -> Iterator[tuple[int, str, str]]:
    """Renames that had started, each with its operation's number, old and new name, that never stood for one inode."""
    trees = history.trees[: history.started + 1]
    for number, operation in enumerate(history.workload.operations[: history.started]):
        if operation.word != "rename":
            continue
        old, new = operation.path, operation.to
        inode = trees[number][old].inode
        before = any(new in tree and tree[new].inode == inode for tree in trees[: number + 1])
        after = any(old in tree and tree[old].inode == inode for tree in trees[number + 1 :])
        if not before and not after:
            yield number, old, new
