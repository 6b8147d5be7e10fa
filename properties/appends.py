"""Which writes of a workload are appends that P2 and P3 speak about."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from postcrash.model import History, Operation, Workload
from postcrash.model.segments import written

_SIZE_WORDS = ("truncate", "fallocate")


@dataclass(frozen=True, slots=True)
class Append:
    """One append: `index` in the workload's operations; its bytes go from `start` up to `end` of the file `path`."""

    index: int
    path: str
    start: int
    end: int
    source: str


def sole_appends(history: History, words: Collection[str]) -> tuple[Append, ...]:
    """The recorded operations, among those called `words`, that append to a file which nothing else changes.

    Nothing else: no recorded operation writes to the file, sets its size, or gives it another name, before or after,
    and its name was never another file's. What the set-up did to it is only its past.
    """
    return _sole_appends(history.workload, frozenset(words))


@lru_cache(maxsize=256)
def _sole_appends(workload: Workload, words: frozenset[str]) -> tuple[Append, ...]:
    history = History(workload, 0, 0)
    recorded = range(len(workload.setup), len(workload.operations))
    return tuple(
        append
        for index in recorded
        if workload.operations[index].word in words and not workload.operations[index].is_held
        for append in _append_at(history, index)
        if not _is_changed_otherwise(history, append)
    )


def _append_at(history: History, index: int) -> Iterator[Append]:
    operation = history.workload.operations[index]
    start = history.trees[index][operation.path].size
    if operation.word == "append" or operation.offset == start:
        assert operation.length is not None and operation.tag is not None
        yield Append(index, operation.path, start, start + operation.length, written(operation.tag))


def _is_changed_otherwise(history: History, append: Append) -> bool:
    inode = history.trees[append.index][append.path].inode
    recorded = range(len(history.workload.setup), len(history.workload.operations))
    for number in (*recorded, recorded.stop):
        entry = history.trees[number].get(append.path)
        is_not_yet = entry is None and number < append.index
        if not is_not_yet and (entry is None or entry.inode != inode or entry.nlink != 1):
            return True
    return any(index != append.index and _changes(history, index, inode) for index in recorded)


def _changes(history: History, index: int, inode: int) -> bool:
    operation: Operation = history.workload.operations[index]
    changes_content = operation.form.data or operation.word in _SIZE_WORDS
    return changes_content and history.trees[index][operation.path].inode == inode
