"""The number of links of each inode is the number of its names.

A directory has two links and one more for each directory in it, or every directory has one. They have one on btrfs and
on other file systems that do not count: stat(2) does not define the number for directories.

Not checked: a root with more links than it shows directories. Trees leave some directories out (`lost+found`), and the
file system hides others (reiserfs keeps one of its own).
"""

from collections import Counter

from postcrash.checkers.checker import Checker
from postcrash.model import Entry, History, Observation
from postcrash.model.judge import CannotTellError, Opinion, holds, violated
from postcrash.model.tree import ROOT_PATH, parent


class LinkCounts(Checker):
    """No inode has more or fewer links than names."""

    name = "link-counts"
    statement = "Every file has as many links as names, and every directory as many as its subdirectories ask for."
    depends_on: tuple[str, ...] = ()

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first entry whose number of links is not the number of its names.

        Raises `CannotTellError` if an entry that could not be read may hide names.
        """
        tree = observation.tree
        if unread := next((entry for entry in tree.values() if entry.error), None):
            raise CannotTellError(f"{unread.path} cannot be read (errno {unread.error}), and may have names in it")
        names = Counter(entry.inode for entry in tree.values())
        subdirectories = Counter(
            parent(path) for path, entry in tree.items() if entry.type == "dir" and path != ROOT_PATH
        )
        is_counted = any(entry.type == "dir" and (entry.nlink or 1) > 1 for entry in tree.values())
        for path, entry in tree.items():
            if entry.type == "dir":
                message = _of_directory(entry, subdirectories[path], is_counted)
            else:
                message = _of_file(entry, names[entry.inode])
            if message:
                return violated(f"{path} has {entry.nlink} links, but {message}", path)
        return holds(relevant=any(_counts(entry) for path, entry in tree.items() if path != ROOT_PATH))


def _counts(entry: Entry) -> bool:
    return entry.nlink is not None and not (entry.type == "dir" and entry.nlink == 1)


def _of_directory(entry: Entry, subdirectories: int, is_counted: bool) -> str:
    least = 2 + subdirectories if is_counted else 1
    if entry.nlink in (None, least) or (entry.path == ROOT_PATH and entry.nlink > least):
        return ""
    return f"{subdirectories} subdirectories"


def _of_file(entry: Entry, names: int) -> str:
    return "" if entry.nlink in (None, names) else f"{names} name{'s' if names > 1 else ''}"
