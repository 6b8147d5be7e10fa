"""P3, ordered data appends.

The second append counts as found if its first byte is in its place. The paper speaks of finding q1, q2, …, which is a
prefix, and any prefix that is not empty has q1. Then every byte of the first append must be there.
"""

from itertools import combinations

from postcrash.model import Entry, History, Observation, Tree, Workload, all_from, source_at, words_where
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.properties.appends import Append, sole_appends
from postcrash.properties.family import family
from postcrash.properties.property import Property
from postcrash.properties.wording import operation_at, shown_bytes

_WORDS = words_where(lambda form: form.data)


class OrderedDataAppends(Property):
    """P3 of HotDep'13."""

    name = "P3"
    title = "ordered data appends"
    statement = (
        "If data is appended to one file (by write() or through a mapping) and then data to another file, and the "
        "second data is found after a crash, then all of the first is there."
    )
    source = "HotDep'13, section 2 (P3)"
    exclusions = (
        "Two appends to the same file: the paper says two files (P2 covers what one append leaves).",
        "A second append of which only a later part is there, without its first byte.",
        "A file that a recorded operation also writes otherwise, truncates, preallocates, renames or removes, or whose "
        "name is another file's at some time.",
        "Overwrites.",
    )

    def workloads(self) -> tuple[Workload, ...]:
        """Two appends with the second one pushed out first, by fsync or by write-back."""
        return family(*_ROWS)

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if the beginning of a second append is there."""
        tree = observation.tree
        relevant = False
        for first, second in combinations(filter(lambda append: append.is_kept, sole_appends(history, _WORDS)), 2):
            if first.inode == second.inode or not _is_found(second, tree):
                continue
            relevant = True
            if not any(_has_all(first, tree[name]) for name in first.names if name in tree):
                message = (
                    f"{operation_at(history.workload, second.index)} is found, "
                    f"{operation_at(history.workload, first.index)} before it is not: "
                    f"{shown_bytes(history.workload, first.path, tree.get(first.path), first.start, first.end)}"
                )
                return violated(message)
        return holds("both appends are there") if relevant else UNTESTED


def _is_found(append: Append, tree: Tree) -> bool:
    return any(source_at(tree[name], append.start) == append.source for name in append.names if name in tree)


def _has_all(append: Append, entry: Entry) -> bool:
    return all_from(entry, append.start, append.end, {append.source})


_NEW = "creat a; creat b; append a 4096; append b 4096"
_BLOCKS = "creat a; append a 4096; creat b; append b 4096"
_SMALL = "creat a; append a 100; creat b; append b 100"

_ROWS = (
    ("p3-new", "", _NEW),
    ("p3-new-writeback-b", "", f"{_NEW}; writeback b"),
    ("p3-new-commit-writeback-b", "", f"{_NEW}; commit; writeback b"),
    ("p3-new-fsync-b", "", f"{_NEW}; fsync b"),
    ("p3-new-fsync-other", "creat o", f"{_NEW}; fsync o"),
    (
        "p3-new-writeback-second-page-of-a",
        "",
        "creat a; creat b; append a 8192; append b 4096; writeback a 4096 4096; writeback b",
    ),
    ("p3-blocks-writeback-b", _BLOCKS, "append a 4096; append b 4096; writeback b"),
    ("p3-blocks-fsync-b", _BLOCKS, "append a 4096; append b 4096; fsync b"),
    ("p3-blocks-commit-between-fsync-b", _BLOCKS, "append a 4096; commit; append b 4096; fsync b"),
    ("p3-small", _SMALL, "append a 100; append b 100"),
    ("p3-small-writeback-b", _SMALL, "append a 100; append b 100; writeback b"),
    ("p3-small-fsync-b", _SMALL, "append a 100; append b 100; fsync b"),
    (
        "p3-two-dirs-fsync-b",
        "mkdir D; mkdir E",
        "creat D/a; creat E/b; append D/a 4096; append E/b 4096; fsync E/b",
    ),
    ("p3-mmap-fsync-b", _BLOCKS, "mmapwrite a 4096 4096; append b 4096; fsync b"),
)
