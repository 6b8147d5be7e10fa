"""Nothing appears that never was.

Names only: a name must be one that some operation, started before the crash, made in that directory. Directories are
followed through renames, so a file made in a renamed directory may show under the directory's old name.

Not checked: bytes. Where free space holds other files' data, some file systems show it (ext3 with data=writeback says
so in its documentation); P2 tells.
"""

from collections import defaultdict
from functools import lru_cache

from postcrash.checkers.checker import Finding
from postcrash.checkers.links import Link, links
from postcrash.model import History, Observation
from postcrash.model.simulate import ROOT_INODE
from postcrash.model.tree import ROOT_PATH

MADE_BY_MKFS = frozenset({"lost+found"})
"""Names in the root directory that mke2fs(8) and mkfs.f2fs(8) put there."""


class NeverWritten:
    """No name appears that no operation made."""

    name = "never-written"
    statement = "Every name in the tree is one that an operation made before the crash."

    def check(self, history: History, observation: Observation) -> Finding | None:
        """The first name that nothing made."""
        made = _made(history)
        for path in observation.tree:
            if path not in MADE_BY_MKFS and not _is_explained(path, made):
                return Finding(self.name, f"{path} is there, but no operation made it", path)
        return None


@lru_cache(maxsize=256)
def _made(history: History) -> dict[Link, frozenset[int]]:
    made: dict[Link, set[int]] = defaultdict(set)
    for tree in history.possible_trees(0):
        for link, inode in links(tree).items():
            made[link].add(inode)
    return {link: frozenset(inodes) for link, inodes in made.items()}


def _is_explained(path: str, made: dict[Link, frozenset[int]]) -> bool:
    directories = frozenset({ROOT_INODE})
    if path == ROOT_PATH:
        return True
    for name in path.split("/"):
        found = (made.get(Link(directory, name), frozenset()) for directory in directories)
        directories = frozenset[int]().union(*found)
    return bool(directories)
