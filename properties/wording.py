"""Words that messages share. Operations are numbered from 1, set-up included."""

from postcrash.model import Entry, Workload, runs
from postcrash.model.segments import merged, write_of

_RUNS_MAX = 4


def operation_at(workload: Workload, index: int) -> str:
    """For example `fsync A (operation 5)`. `index` counts `workload.operations` from 0."""
    return f"{workload.operations[index]} (operation {index + 1})"


def shown_bytes(workload: Workload, path: str, entry: Entry | None, start: int, end: int) -> str:
    """What an observed tree has where the bytes from `start` up to `end` of `path` should be."""
    if entry is None:
        return f"{path} is missing"
    if entry.error:
        return f"{path} cannot be read (errno {entry.error})"
    if entry.type != "file":
        return f"{path} is a {entry.type}"
    length = f"{path} is {entry.size} bytes long"
    found = merged(runs(entry, start, end))
    if not found:
        return length
    shown = [f"{run.start} to {run.end} are {shown_source(workload, run.source)}" for run in found[:_RUNS_MAX]]
    more = [f"{len(found) - _RUNS_MAX} more runs"] if len(found) > _RUNS_MAX else []
    return f"{length}; of its bytes, {', '.join([*shown, *more])}"


def shown_source(workload: Workload, source: str) -> str:
    """What the bytes of `source` are: `zero`, `those of append A 4096`."""
    if write := write_of(source):
        tags = {operation.tag: str(operation) for operation in workload.operations}
        moved = f", {abs(write[1])} bytes {'behind' if write[1] > 0 else 'before'} their place" if write[1] else ""
        return f"those of {tags.get(write[0], f'a write (tag {write[0]}) that is not in the workload')}{moved}"
    kind, _, number = source.partition(":")
    if kind == "error":
        return f"not readable (errno {number})"
    return {"stale": "stale, from free space", "other": "of unknown origin"}.get(kind, kind)
