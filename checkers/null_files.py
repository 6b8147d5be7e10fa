"""A file that has a size has some of its data: it is not full of zeros unless each byte was zero at some time.

Programs write a file and set its size later, as by truncate. If the size is durable before the bytes below it, a crash
leaves a file full of zeros: the problem of null files, which xfs mends by writing the data before it logs the size.
properties/practice.toml has the tests, and the file systems of which this is expected.

The checker looks at files of which every byte is zero. Such a file is fine if it can be a file that had its name, and
if each byte of that file was zero at some time, as far as both are long. A byte is zero in a hole, in space that was
allocated, and where zeros were written. A store through a mapping makes a shorter file longer first, so that what it
adds begins as zeros. The checker does not look at a file that was emptied after it had bytes (`in_place` says why), nor
at one that nothing made.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from postcrash.checkers.candidates import candidates
from postcrash.checkers.checker import Checker
from postcrash.checkers.inode_history import inode_history
from postcrash.checkers.inode_identity import mismatch
from postcrash.model import Entry, History, Observation, Route, Workload, all_from
from postcrash.model.judge import Opinion, holds, violated
from postcrash.model.segments import ZERO


class NullFiles(Checker):
    """A size does not come before the data."""

    name = "null-files"
    statement = "A file that has a size is not full of zeros, unless each of its bytes was zero at some time."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first file that is full of zeros and cannot be."""
        files = [(path, entry) for path, entry in observation.tree.items() if _has_size(entry)]
        for path, entry in files:
            if all_from(entry, 0, entry.size, {ZERO}):
                had_data = list(_had_data(history, path, entry))
                if had_data and all(had_data):
                    found = f"{path} is {entry.size} bytes long and full of zeros"
                    return violated(f"{found}, but whenever it had a size it had data", path)
        return holds(relevant=any(any(_had_data(history, path, entry)) for path, entry in files))


def _has_size(entry: Entry) -> bool:
    return entry.type == "file" and entry.size > 0 and not entry.error


def _had_data(history: History, path: str, entry: Entry) -> Iterator[bool]:
    """For each file that the name can stand for and that the entry can be: whether it has some data for good."""
    for inode, past in candidates(history).now(path).items():
        if not mismatch(past, entry):
            yield _has_data(history.workload, inode, history.started, entry.size)


@lru_cache(maxsize=4096)
def _has_data(workload: Workload, inode: int, started: int, size: int) -> bool:
    """Whether a byte below `size` was never zero while the file had it, and the file was never emptied."""
    states = [entry for entry in inode_history(workload).states(inode, 0, started) if entry.type == "file"]
    sizes = [entry.size for entry in states]
    zeros = [(run.start, run.end) for entry in states for run in entry.segments if run.source == ZERO]
    reached = 0
    for start, end in sorted([*zeros, *_grown(workload, inode, started)]):
        if start > reached:
            break
        reached = max(reached, end)
    return reached < min(size, max(sizes, default=0)) and not _is_emptied(sizes)


def _grown(workload: Workload, inode: int, started: int) -> Iterator[tuple[int, int]]:
    """What stores through a mapping added to the file: they make it longer first."""
    for operation, trees in zip(workload.operations[:started], pairwise(inode_history(workload).trees), strict=False):
        if operation.form.data is Route.MAPPING:
            old, new = (tree.held.get(operation.path) or tree[operation.path] for tree in trees)
            if old.inode == inode and old.size < new.size:
                yield old.size, new.size


def _is_emptied(sizes: Iterable[int]) -> bool:
    return any(before and not after for before, after in pairwise(sizes))
