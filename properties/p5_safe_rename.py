"""P5, safe rename.

A tells whether the rename is visible: any byte of A that only the new file has shows it. Without such a byte the rename
is not visible while any byte of A is one of old A's. The rename also shows if A is missing, empty or holds anything
else, because nothing else in the workload could have taken the old contents away. So a missing A breaks P5, with a
message of its own: the name is durable, and only the rename touched it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from postcrash.model import Entry, History, Observation, Route, Workload, all_from, any_from
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.model.segments import written
from postcrash.properties.effects import sources_of_writes
from postcrash.properties.family import family
from postcrash.properties.property import Property
from postcrash.properties.wording import operation_at, shown_bytes


class SafeRename(Property):
    """P5 of HotDep'13."""

    name = "P5"
    title = "safe rename"
    statement = (
        "If a file A exists, a file B is created, data is written to B, and B is renamed to A, then after a crash that "
        "shows the rename all data written to B is on A."
    )
    source = "HotDep'13, section 2 (P5)"
    exclusions = (
        "A rename to a name that did not exist (the paper names that as another property), "
        "or onto a file without data, which would not show whether the rename is there.",
        "An A that a recorded operation changes otherwise, and a B that the set-up had made.",
        "Bytes behind those written to B, and bytes that were stored through a mapping: no call wrote them.",
    )

    def workloads(self) -> tuple[Workload, ...]:
        """Replacing a file without flushing the new one first."""
        return family(*_ROWS)

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if the rename is visible."""
        tree = observation.tree
        relevant = False
        for rename in _replacements(history):
            entry = tree.get(rename.path)
            if entry is not None and not _is_visible(rename, entry):
                continue
            relevant = True
            broken = _missing_data(history.workload, rename, entry)
            if broken:
                visible = operation_at(history.workload, rename.position)
                return violated(f"{visible} is visible, but {broken}")
        return holds("the renamed file has its data") if relevant else UNTESTED


class _Replacement(NamedTuple):
    """The rename at `position` of the operations put the file `new` in the place of `old`, which was called `path`."""

    position: int
    path: str
    old: Entry
    new: Entry


def _is_visible(rename: _Replacement, entry: Entry) -> bool:
    """Whether what is found cannot be the old file, whole or in part. Bytes that both files have tell nothing."""
    old = sources_of_writes(rename.old)
    return any_from(entry, sources_of_writes(rename.new) - old) or not any_from(entry, old)


def _missing_data(workload: Workload, rename: _Replacement, entry: Entry | None) -> str:
    if entry is None:
        return f"{rename.path} is missing: neither the old file nor the new one has the name"
    called = _called(workload)
    for segment in rename.new.segments:
        if segment.source in called and not all_from(entry, segment.start, segment.end, {segment.source}):
            return shown_bytes(workload, rename.path, entry, segment.start, segment.end)
    return ""


def _replacements(history: History) -> Iterator[_Replacement]:
    """The started renames that replace a file with data by a file that recorded operations made and wrote to."""
    first, called = len(history.workload.setup), _called(history.workload)
    for index in range(first, history.started):
        operation = history.workload.operations[index]
        if operation.word != "rename":
            continue
        before = history.trees[index]
        new, old = before[operation.path], before.get(operation.to)
        if old is None or not sources_of_writes(old) or not called & sources_of_writes(new):
            continue
        is_old_file = _is_unchanged(history, operation.to, old, first, index)
        is_left_alone = _is_unchanged(history, operation.to, new, index + 1, history.started)
        if is_old_file and is_left_alone and not history.trees[first].names(new.inode):
            yield _Replacement(index, operation.to, old, new)


def _is_unchanged(history: History, path: str, entry: Entry, first: int, last: int) -> bool:
    """Whether `path` is the same file with the same content in all trees from `first` to `last`."""
    same = (entry.inode, entry.segments)
    trees = history.trees[first : last + 1]
    return all(path in tree and (tree[path].inode, tree[path].segments) == same for tree in trees)


@lru_cache(maxsize=256)
def _called(workload: Workload) -> frozenset[str]:
    """The sources of bytes that were written by calls."""
    writing = (each for each in workload.operations if each.form.data not in (None, Route.MAPPING))
    return frozenset(written(each.tag) for each in writing if each.tag is not None)


_OLD = "creat a; append a 4096"

_ROWS = (
    ("p5-100", _OLD, "creat b; append b 100; rename b a"),
    ("p5-4096", _OLD, "creat b; append b 4096; rename b a"),
    ("p5-12288", _OLD, "creat b; append b 12288; rename b a"),
    ("p5-4096-writeback-before", _OLD, "creat b; append b 4096; writeback b; rename b a"),
    (
        "p5-8192-writeback-second-page-before",
        _OLD,
        "creat b; append b 8192; writeback b 4096 4096; rename b a",
    ),
    ("p5-4096-commit-before", _OLD, "creat b; append b 4096; commit; rename b a"),
    ("p5-4096-fsync-other", f"creat o; {_OLD}", "creat b; append b 4096; rename b a; fsync o"),
    ("p5-4096-fsync-dir", _OLD, "creat b; append b 4096; rename b a; fsync ."),
    ("p5-4096-across-fsync-dir", f"mkdir D; {_OLD}", "creat D/b; append D/b 4096; rename D/b a; fsync D"),
)
