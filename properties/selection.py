"""Selects the recorded operations of a workload to which a property applies."""

from collections.abc import Callable

from postcrash.model import Naming, Operation, Route, Tree, Workload, words_where
from postcrash.model.history import trees_of

OperationGroup = tuple[int, ...]
"""Operations that are taken as one, by their places in the workload's operations, in order."""
Selector = Callable[[Workload], tuple[OperationGroup, ...]]
Test = Callable[[Operation, Tree], bool]
"""A condition on an operation and the tree before it."""

_UNNAMED = ("dwrite-osync",)
"""Words to which no property of `Atomic`, `Ordered` and `Durable` applies, although they write."""

DIRECTORY = words_where(lambda form: form.naming and form.naming is not Naming.SWAP)
BUFFERED = words_where(lambda form: form.data is Route.CACHE)
WRITING = words_where(lambda form: form.data and form.word not in _UNNAMED)
UNMAPPED = words_where(lambda form: form.data and form.data is not Route.MAPPING and form.word not in _UNNAMED)
"""What writes by a system call. A store through a mapping is none: nothing returns that could promise something."""
ATTRIBUTES = words_where(lambda form: form.attributes)
ALL = words_where(lambda form: form.changes_tree and form.word not in _UNNAMED)
"""Whatever changes the tree, but for `_UNNAMED`."""


def operations(*words: str, where: Test = lambda operation, tree: True) -> Selector:
    """Each recorded operation with one of `words` for which `where` holds, as a group of its own.

    Operations on a handle are left out, because what properties say of a file they say of its name.
    """

    def select(workload: Workload) -> tuple[OperationGroup, ...]:
        trees = trees_of(workload)
        return tuple(
            (index,)
            for index in range(len(workload.setup), len(workload.operations))
            if workload.operations[index].word in words
            and not workload.operations[index].is_held
            and where(workload.operations[index], trees[index])
        )

    return select


def pairs(first: Selector, second: Selector) -> Selector:
    """Each of `first` together with the next of `second` on the same file, if there is one, taken as one."""

    def select(workload: Workload) -> tuple[OperationGroup, ...]:
        seconds = [(index, file_of(workload, index)) for (index,) in second(workload)]
        found = [
            (index, next((k for k, file in seconds if k > index and file == file_of(workload, index)), None))
            for (index,) in first(workload)
        ]
        return tuple((index, later) for index, later in found if later is not None)

    return select


def file_of(workload: Workload, index: int) -> int | None:
    """The inode of what the operation's path names: what it makes, or what was there. None if it names nothing."""
    before, after = trees_of(workload)[index : index + 2]
    path = workload.operations[index].path
    entry = before.get(path) or after.get(path)
    return None if entry is None else entry.inode


def span(operation: Operation, tree: Tree) -> tuple[int, int]:
    """Where the bytes of an operation that writes begin and end."""
    assert operation.length is not None
    start = operation.offset if operation.offset is not None else tree[operation.path].size
    return start, start + operation.length


def is_overwrite(operation: Operation, tree: Tree) -> bool:
    """Whether all bytes that are written lie within the file."""
    return span(operation, tree)[1] <= tree[operation.path].size


def is_append(operation: Operation, tree: Tree) -> bool:
    """Whether the bytes begin where the file ends."""
    return span(operation, tree)[0] == tree[operation.path].size


def is_within(unit_bytes: int) -> Test:
    """Whether the bytes lie in one unit."""

    def test(operation: Operation, tree: Tree) -> bool:
        start, end = span(operation, tree)
        return start // unit_bytes == (end - 1) // unit_bytes

    return test


def both(*tests: Test) -> Test:
    """Whether all of `tests` are true."""
    return lambda operation, tree: all(test(operation, tree) for test in tests)


def negation(test: Test) -> Test:
    """Whether `test` is not true."""
    return lambda operation, tree: not test(operation, tree)
