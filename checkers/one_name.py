"""After a rename a file is under its old name or under its new one, never under both.

rename(2) says that there "will probably be a window in which both oldpath and newpath refer to the file being renamed".
File systems with a journal or a log commit a rename as a whole, and fstests expects this of them.
properties/practice.toml has the numbers of the tests, and the file systems of which this is expected. If the old name
was durable, `durability` checks that the file is under one of the two names.

Not checked: names whose last part is one that a file with several links ever had, because the link may have made the
name; names that are two renames apart; exchanges; names in a directory that a later operation renames; entries that
cannot be read, which `mounts` checks.
"""

from collections import Counter
from functools import lru_cache

from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.lives import lives
from postcrash.model import History, Observation, Workload
from postcrash.model.tree import ROOT_PATH
from postcrash.properties.wording import operation_at


class OneName:
    """A rename moves a name, and never doubles it."""

    name = "one-name"
    statement = "What was renamed is not found under its old and its new name at once."
    depends_on: tuple[str, ...] = ("started",)
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first rename whose two names stand for one inode."""
        for number, old, new in _renames(history):
            one, other = observation.tree.get(old), observation.tree.get(new)
            if one and other and not one.error and (one.inode, one.type) == (other.inode, other.type):
                said = operation_at(history.workload, number)
                return Objection(self.name, f"{said}: the same {one.type} is {old} and {new}", new)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether something was renamed, and either it or what it replaced is there."""
        return any(old in observation.tree or new in observation.tree for _, old, new in _renames(history))


def _renames(history: History) -> list[tuple[int, str, str]]:
    """Renames that had started and whose names no link made: the operation's number, the old and the new name."""
    shared = _shared_names(history.workload, history.started)
    found = []
    for number, operation in enumerate(history.workload.operations[: history.started]):
        names = {path.rpartition("/")[2] for path in (operation.path, operation.to)}
        if operation.word == "rename" and operation.path != operation.to and not names & shared:
            found.append((number, operation.path, operation.to))
    return found


@lru_cache(maxsize=256)
def _shared_names(workload: Workload, started: int) -> frozenset[str]:
    """The last parts of all names that an inode with several names at once ever had."""
    known = lives(workload)
    shared = set()
    for tree in known.trees[: started + 1]:
        counts = Counter(tree[path].inode for path in tree.paths() if path != ROOT_PATH)
        shared |= {inode for inode, count in counts.items() if count > 1}
    return frozenset(link.name for inode in shared for link in known.links[inode])
