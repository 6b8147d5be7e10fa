"""Finds the appends of a workload to which P2 and P3 apply."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from postcrash.model import History, Workload
from postcrash.model.segments import written
from postcrash.model.tree import is_one_folder


@dataclass(frozen=True, slots=True)
class Append:
    """One append: `index` in the workload's operations. Its bytes go from `start` up to `end` of the file `inode`.

    `names`, its `path` among them, can only be names of this file, whatever operations a crash keeps. `is_kept` says
    whether no operation takes `path` away.
    """

    index: int
    inode: int
    path: str
    names: tuple[str, ...]
    is_kept: bool
    start: int
    end: int
    source: str


def sole_appends(history: History, words: Collection[str]) -> tuple[Append, ...]:
    """The recorded operations, among those called `words`, that append to a file which nothing else changes.

    This means that no other recorded operation writes to the file or sets its size, before or after, and that its name
    was never another file's. What the set-up did to the file does not matter.
    """
    return _sole_appends(history.workload, frozenset(words))


@lru_cache(maxsize=256)
def _sole_appends(workload: Workload, words: frozenset[str]) -> tuple[Append, ...]:
    history = History(workload, 0, 0)
    indices = range(len(workload.setup), len(workload.operations))
    return tuple(
        append
        for index in indices
        if workload.operations[index].word in words and not workload.operations[index].is_held
        for append in _append_at(history, index)
        if append.path in append.names and not _is_changed_otherwise(history, append)
    )


def _append_at(history: History, index: int) -> Iterator[Append]:
    operation = history.workload.operations[index]
    path, entry = operation.path, history.trees[index][operation.path]
    if operation.word == "append" or operation.offset == entry.size:
        assert operation.length is not None and operation.tag is not None
        is_kept = all(path in tree for tree in history.trees[index:])
        names, end = tuple(_own_names(history, entry.inode)), entry.size + operation.length
        yield Append(
            index,
            entry.inode,
            path,
            names=names,
            is_kept=is_kept,
            start=entry.size,
            end=end,
            source=written(operation.tag),
        )


def _own_names(history: History, inode: int) -> Iterator[str]:
    """The names of the inode that are never another inode's, and whose directories keep their paths."""
    trees = history.trees[len(history.workload.setup) :]
    for name in sorted({name for tree in trees for name in tree.names(inode)}):
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        is_own = all(name not in tree or tree[name].inode == inode for tree in trees)
        if is_own and all(is_one_folder(trees, directory) for directory in above):
            yield name


def _is_changed_otherwise(history: History, append: Append) -> bool:
    inode = history.trees[append.index][append.path].inode
    indices = range(len(history.workload.setup), len(history.workload.operations))
    return any(index != append.index and _changes(history, index, inode) for index in indices)


def _changes(history: History, index: int, inode: int) -> bool:
    changed = history.workload.operations[index].changed_file
    return changed is not None and history.trees[index][changed].inode == inode
