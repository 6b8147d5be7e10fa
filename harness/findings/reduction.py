"""Finds the smallest workload that still breaks a judge: delta debugging over operations, then over their arguments.

First operations are left out, many at a time and then one by one, beginning at the end (the complements of Zeller and
Hildebrandt, *Simplifying and Isolating Failure-Inducing Input*, 2002). Operations that can no longer succeed are left
out with them. Then operations are made simpler. Both steps are repeated until none is left with which the workload
still breaks the judge. The order of the steps depends only on the workload, and so the result does too.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from postcrash.model import Operation, SimulationError, Workload, WorkloadError, parse_workload, simulate
from postcrash.model.operation import HANDLE, PATHS, on_path
from postcrash.model.tree import ROOT_PATH

Breaks = Callable[[Workload], bool]

SIMPLER_WORDS = {
    "dwrite": "write",
    "mmapwrite": "write",
    "write-osync": "write",
    "dwrite-osync": "dwrite",
    "awrite": "dwrite",
    "awrite-odsync": "awrite",
    "write-odsync": "write",
    "write": "append",
    "msync": "fsync",
    "fdatasync": "fsync",
    "syncfs": "sync",
    "exchange": "rename",
    "dedupe": "reflink",
}
_NUMBERS = (0, 1, 512, 4096)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def minimal(workload: Workload, breaks: Breaks) -> Workload:
    """Returns a workload for which `breaks` holds, but not for any of its reductions and simplifications.

    `breaks` must hold for `workload`. It is called once for each workload that can succeed. Each workload for which it
    holds is smaller than the one before, and the last one is the result.
    """
    known: dict[str, bool] = {}

    def breaks_once(candidate: Workload) -> bool:
        text = candidate.to_text()
        if text not in known:
            known[text] = breaks(candidate)
        return known[text]

    while True:
        smaller = _with_fewer_operations(workload, breaks_once)
        simpler = next(filter(breaks_once, simplifications(smaller)), None)
        if simpler is None:
            return smaller
        workload = simpler


def _with_fewer_operations(workload: Workload, breaks: Breaks) -> Workload:
    size = len(workload.operations)
    while size:
        smaller = next(filter(breaks, _without_runs(workload, size)), None)
        if smaller is None:
            size //= 2
        else:
            workload = smaller
            size = min(size, len(workload.operations))
    return workload


def _without_runs(workload: Workload, size: int) -> Iterator[Workload]:
    """Yields the workload without each run of `size` operations, from the end to the beginning."""
    for end in range(len(workload.operations), 0, -size):
        dropped = range(max(0, end - size), end)
        candidate = possible(workload, [None if i in dropped else op for i, op in enumerate(workload.operations)])
        if candidate is not None:
            yield candidate


def possible(workload: Workload, changed: list[Operation | None]) -> Workload | None:
    """The workload with `changed` operations: one, or None, for each of its own. Those that then fail are left out.

    None if nothing is left to record, or if an argument is not allowed.
    """
    count = len(workload.setup)
    setup, ops = (tuple(filter(None, part)) for part in (changed[:count], changed[count:]))
    while True:
        try:
            candidate = parse_workload(Workload(workload.name, setup, ops).to_text(), workload.name)
            simulate(candidate)
            return candidate
        except SimulationError as error:
            setup, ops = (
                tuple(op for op in part if op is not error.operation) for part in (candidate.setup, candidate.ops)
            )
        except WorkloadError:
            return None


def simplifications(workload: Workload) -> Iterator[Workload]:
    """Workloads that are a step simpler and can succeed: fewer folders, simpler operations, shorter names."""
    operations = workload.operations
    for folder in [op.path for op in operations if op.word == "mkdir"]:
        yield from _changed(workload, [_hoisted(op, folder) for op in operations])
    for i, operation in enumerate(operations):
        for simpler in _simpler(operation):
            yield from _changed(workload, [*operations[:i], simpler, *operations[i + 1 :]])
    yield from _changed(workload, _renamed(operations))


def _changed(workload: Workload, changed: list[Operation | None]) -> Iterator[Workload]:
    candidate = possible(workload, changed)
    if candidate is not None and candidate.to_text() != workload.to_text():
        yield candidate


def _simpler(operation: Operation) -> Iterator[Operation]:
    word = SIMPLER_WORDS.get(operation.word)
    if word == "append":
        yield replace(operation, word=word, offset=None)
    elif word is not None:
        yield replace(operation, word=word)
    if operation.form.optional and operation.offset is not None:
        yield replace(operation, offset=None, length=None)
    for number in _smaller(operation.offset):
        yield replace(operation, offset=number)
    for number in _smaller(operation.to_offset):
        yield replace(operation, to_offset=number)
    for number in _smaller(operation.length):
        yield replace(operation, length=number)
    for number in _smaller(operation.seconds):
        if number:
            yield replace(operation, seconds=number)
    if operation.mode and operation.mode != (simplest := "fifo" if operation.word == "mknod" else "none"):
        yield replace(operation, mode=simplest)
    if operation.value:
        yield replace(operation, value="")
    if operation.is_held:
        yield replace(operation, path=operation.path.removeprefix(HANDLE))


def _smaller(number: int | None) -> list[int]:
    """The numbers that are tried in place of `number`, smallest first."""
    return sorted({smaller for smaller in (*_NUMBERS, (number or 0) // 2) if smaller < (number or 0)})


def _hoisted(operation: Operation, folder: str) -> Operation | None:
    """The operation with files of `folder` moved to the root. None if the operation is about the folder itself."""
    if folder in _paths(operation):
        return None
    return _with_paths(operation, lambda path: path.removeprefix(f"{folder}/"))


def _renamed(operations: tuple[Operation, ...]) -> list[Operation | None]:
    """The operations with names of one letter, in the order of their use. Unchanged if there are too many names."""
    names = dict.fromkeys(
        name for op in operations for path in _paths(op) if path != ROOT_PATH for name in path.split("/")
    )
    if len(names) > len(_LETTERS):
        return list(operations)
    letters = {ROOT_PATH: ROOT_PATH, **dict(zip(names, _LETTERS, strict=False))}
    return [_with_paths(op, lambda path: "/".join(letters[name] for name in path.split("/"))) for op in operations]


def _paths(operation: Operation) -> list[str]:
    """The paths of the operation. A handle counts as the path that it is named after."""
    return [str(value).removeprefix(HANDLE) for argument, value in operation.arguments if argument.kind in PATHS]


def _with_paths(operation: Operation, change: Callable[[str], str]) -> Operation:
    """The operation with each of `_paths` changed."""
    texts = {argument.field: str(value) for argument, value in operation.arguments if argument.kind in PATHS}
    changed = {field: on_path(change, text) for field, text in texts.items()}
    return replace(operation, **changed)  # type: ignore[arg-type]
