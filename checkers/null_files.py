"""A file that has a size has some of its data: it is not full of zeros unless it was at some time.

Programs write a file and set its size later, as by truncate. If the size is durable before the bytes below it, a crash
leaves a file full of zeros: the problem of null files, which xfs mends by writing the data before it logs the size.
properties/practice.toml has the tests, and the file systems of which this is expected.

The checker looks at files of which every byte is zero. Such a file is fine if a file that had its name was so at some
time, as far as the two are long: it had a hole there, space that was allocated, or zeros that were written. The checker
does not look at a file that was emptied after it had bytes (`in_place` says why), nor at one that nothing made.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from postcrash.checkers.candidates import candidates
from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.lives import lives
from postcrash.model import Entry, History, Observation, Workload, all_from
from postcrash.model.segments import ZERO


class NullFiles:
    """A size does not come before the data."""

    name = "null-files"
    statement = "A file that has a size is not full of zeros, unless it was so at some time."
    depends_on: tuple[str, ...] = ("started", "returned")
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first file that is full of zeros and never was."""
        for path, entry in observation.tree.items():
            if _has_size(entry) and all_from(entry, 0, entry.size, {ZERO}):
                had_data = list(_had_data(history, path, entry))
                if had_data and all(had_data):
                    found = f"{path} is {entry.size} bytes long and full of zeros"
                    return Objection(self.name, f"{found}, but whenever it had a size it had data", path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether there is a file with a size that cannot be full of zeros."""
        files = ((path, entry) for path, entry in observation.tree.items() if _has_size(entry))
        return any(any(_had_data(history, path, entry)) for path, entry in files)


def _has_size(entry: Entry) -> bool:
    return entry.type == "file" and entry.size > 0 and not entry.error


def _had_data(history: History, path: str, entry: Entry) -> Iterator[bool]:
    """For each file that the name can stand for: whether it always had data below the size that is found."""
    for inode in candidates(history).now(path):
        yield _always_had_data(history.workload, inode, history.started, entry.size)


@lru_cache(maxsize=4096)
def _always_had_data(workload: Workload, inode: int, started: int, size: int) -> bool:
    """Whether the file had data below `size` whenever it had a size, and was never emptied."""
    states = [entry for entry in lives(workload).states(inode, 0, started) if entry.type == "file"]
    sizes = [entry.size for entry in states]
    return any(sizes) and not _is_emptied(sizes) and not any(_is_null(entry, size) for entry in states if entry.size)


def _is_emptied(sizes: Iterable[int]) -> bool:
    return any(before and not after for before, after in pairwise(sizes))


def _is_null(entry: Entry, size: int) -> bool:
    """Whether all bytes below `size` are zero."""
    return all_from(entry, 0, min(entry.size, size), {ZERO})
