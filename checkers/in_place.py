"""A file that was emptied, written anew and closed is not empty after the next commit.

Programs replace a file in place: they empty it, write the new content, and close it. If the blocks of the new content
are allocated later than the emptying is committed, a crash in between leaves an empty file. ext4 allocates them when
the file is closed (auto_da_alloc), so the commit that has the emptying has the new size, too. It does so for the first
descriptor that is closed. properties/practice.toml has the file systems of which this is expected.

The checker looks at such files once a `commit` that began after the close has returned. It does not look at what the
file holds: ext4 may show zeros (docs/findings/ext4-replace-not-waited.md). It does not look at a file whose path may
stand for another file, that was stored to through a mapping only, that was opened and closed by other names meanwhile,
or that a later operation empties or renames.
"""

from functools import lru_cache

from postcrash.checkers.bindings import bindings_of
from postcrash.checkers.checker import Checker
from postcrash.checkers.inode_history import inode_history
from postcrash.model import History, Observation, Operation, Route, Tree, Workload
from postcrash.model.judge import Opinion, holds, violated
from postcrash.model.operation import HANDLE
from postcrash.properties.wording import operation_at


class InPlace(Checker):
    """Replacing a file's content in place does not leave it empty."""

    name = "in-place"
    statement = "A file that was emptied, written anew and closed is not empty once a later commit is over."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first file that is empty although it was closed with its new content before a commit."""
        for path, closed, committed in _replaced(history):
            entry = observation.tree.get(path)
            if entry is not None and entry.type == "file" and not entry.error and entry.size == 0:
                close, commit = (operation_at(history.workload, number) for number in (closed, committed))
                message = f"{close} and then {commit} had returned, but {path}, which was written anew, is empty"
                return violated(message, path)
        return holds(relevant=any(path in observation.tree for path, _, _ in _replaced(history)))


@lru_cache(maxsize=256)
def _replaced(history: History) -> tuple[tuple[str, int, int], ...]:
    """Files that must not be empty: the path, and the numbers of the operations that closed and committed it."""
    if not _closed(history.workload):
        return ()
    operations, trees, found = history.workload.operations, history.trees, []
    bindings = bindings_of(history)
    for emptied, closed in _closed(history.workload):
        commits = (number for number in range(closed + 1, history.returned) if operations[number].word == "commit")
        committed, inode = next(commits, None), _opened(trees[emptied], operations[emptied])
        if committed is None or not all(_has_bytes(tree, inode) for tree in trees[closed + 1 : history.started + 1]):
            continue
        for path in trees[closed + 1].names(inode):
            if bindings.inodes(path) == {inode}:
                found.append((path, closed, committed))
    return tuple(found)


@lru_cache(maxsize=256)
def _closed(workload: Workload) -> tuple[tuple[int, int], ...]:
    """The numbers of the operations that emptied a file by a descriptor, and closed it after it was written by it."""
    operations, trees, found = workload.operations, inode_history(workload).trees, []
    for emptied in range(len(workload.setup), len(operations)):
        operation = operations[emptied]
        is_cut = operation.word == "truncate" and not operation.length and operation.path.startswith(HANDLE)
        if is_cut and _has_bytes(trees[emptied], _opened(trees[emptied], operation)):
            closed = _close_of(workload, emptied)
            if closed is not None:
                found.append((emptied, closed))
    return tuple(found)


def _close_of(workload: Workload, emptied: int) -> int | None:
    """The operation that closes the descriptor. None if the file is closed otherwise before, or nothing was written.

    An operation that is given another name of the file opens it, and closes it in the end.
    """
    operations, trees = workload.operations, inode_history(workload).trees
    handle, inode, is_written = operations[emptied].path, _opened(trees[emptied], operations[emptied]), False
    for number in range(emptied + 1, len(operations)):
        operation = operations[number]
        if operation.path == handle:
            is_written = is_written or operation.form.data is Route.CACHE
            if operation.word == "close":
                return number if is_written else None
        elif inode in _named(trees[number], operation):
            return None
    return None


def _named(tree: Tree, operation: Operation) -> set[int]:
    """The inodes that the operation is given by a name or a descriptor."""
    entries = (tree.held.get(name) or tree.get(name) for name in (operation.path, operation.to) if name)
    return {entry.inode for entry in entries if entry is not None}


def _opened(tree: Tree, operation: Operation) -> int:
    """The inode of the descriptor that the operation is given."""
    return tree.held[operation.path].inode


def _has_bytes(tree: Tree, inode: int) -> bool:
    """Whether the inode has a name, and its size is not zero."""
    return any(tree[name].size for name in tree.names(inode))
