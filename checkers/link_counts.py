"""The number of links of each inode is the number of its names.

A directory has two links and one for each directory in it, or always one (btrfs, and others that do not count:
stat(2) does not say what the number is for directories).

Not checked: trees of which something could not be read. `lost+found` is left out of trees and may be there.
"""

from collections import Counter

from postcrash.checkers.checker import Finding
from postcrash.checkers.links import parent
from postcrash.model import Entry, History, Observation
from postcrash.model.tree import ROOT_PATH


class LinkCounts:
    """No inode has more or fewer links than names."""

    name = "link-counts"
    statement = "Every file has as many links as names, and every directory as many as its subdirectories ask for."

    def check(self, history: History, observation: Observation) -> Finding | None:
        """The first entry whose number of links is not the number of its names."""
        tree = observation.tree
        if any(entry.error for entry in tree.values()):
            return None
        names = Counter(entry.inode for entry in tree.values())
        subdirectories = Counter(
            parent(path) for path, entry in tree.items() if entry.type == "dir" and path != ROOT_PATH
        )
        for path, entry in tree.items():
            expected = _expected(entry, names[entry.inode], subdirectories[path])
            if entry.nlink is not None and entry.nlink not in expected:
                return Finding(self.name, f"{path} has {entry.nlink} links, but {_shown(entry, expected)}", path)
        return None


def _expected(entry: Entry, names: int, subdirectories: int) -> tuple[int, ...]:
    if entry.type != "dir":
        return (names,)
    with_lost_and_found = (3 + subdirectories,) if entry.path == ROOT_PATH else ()
    return (2 + subdirectories, *with_lost_and_found, 1)


def _shown(entry: Entry, expected: tuple[int, ...]) -> str:
    if entry.type == "dir":
        return f"{expected[0] - 2} subdirectories"
    return f"{expected[0]} name{'s' if expected[0] > 1 else ''}"
