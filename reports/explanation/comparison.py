"""Compares what was found after a crash with what the workload's operations leave, path by path and in words."""

from collections.abc import Iterable

from postcrash.model import Entry, History, Tree, Workload
from postcrash.model.observation import error_name
from postcrash.model.tree import MADE_BY_MKFS, walk_order
from postcrash.properties.wording import shown_source
from postcrash.reports.store.explained import PathComparison

PATHS_MAX = 60
LINES_MAX = 10
"""How many lines one side may have about one path."""
NAMES_MAX = 4


def compare(history: History, found: Tree) -> tuple[tuple[PathComparison, ...], int]:
    """All paths of either side, and how many had to be left out. Paths without a difference are left out first.

    Raises `SimulationError` if the workload cannot succeed.
    """
    after, in_progress = history.trees[history.returned], history.trees[history.started]
    paths = sorted({*found.paths(), *after.paths(), *in_progress.paths()} - MADE_BY_MKFS, key=walk_order)
    compared = [_compared(path, history.workload, found, after, in_progress) for path in paths]
    if len(compared) <= PATHS_MAX:
        return tuple(compared), 0
    differing = [number for number, comparison in enumerate(compared) if comparison.differs]
    equal = [number for number, comparison in enumerate(compared) if not comparison.differs]
    chosen = sorted([*differing, *equal][:PATHS_MAX])
    return tuple(compared[number] for number in chosen), len(compared) - len(chosen)


def _compared(path: str, workload: Workload, found: Tree, after: Tree, in_progress: Tree) -> PathComparison:
    there, allowed, done = (entry_lines(path, tree, workload) for tree in (found, after, in_progress))
    differs = there not in (allowed, done)
    return PathComparison(path, _cut(there), _cut(allowed), _cut(done) if done != allowed else (), differs)


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    more = len(lines) - LINES_MAX
    return (*lines[:LINES_MAX], f"{more} more lines") if more > 0 else lines


def entry_lines(path: str, tree: Tree, workload: Workload) -> tuple[str, ...]:
    """What is at `path` in `tree`, in words."""
    entry = tree.get(path)
    if entry is None:
        return ("not there",)
    if entry.error:
        return (f"{entry.type}, cannot be read: {error_name(entry.error)}",)
    return (*_nature(entry, tree), *_contents(entry, workload), *_attributes(entry))


def _nature(entry: Entry, tree: Tree) -> Iterable[str]:
    if entry.type == "dir":
        return ["directory"]
    kinds = {
        "file": f"file, {entry.size} bytes",
        "symlink": f"symbolic link to {entry.target}",
        **{kind: f"{kind} device {entry.target}" for kind in ("char", "block")},
    }
    kind = kinds.get(entry.type, entry.type)
    names = [name for name in tree.names(entry.inode) if name != entry.path] if entry.nlink != 1 else []
    links = [f"{entry.nlink} links"] if entry.nlink != 1 else []
    same = [f"the same as {', '.join(names[:NAMES_MAX])}"] if names else []
    return [", ".join([kind, *links, *same])]


def _contents(entry: Entry, workload: Workload) -> Iterable[str]:
    return [f"bytes {run.start} to {run.end}: {_source(workload, run.source)}" for run in entry.segments]


def _source(workload: Workload, source: str) -> str:
    if source == "zero":
        return "zeros"
    if source == "stale":
        return "stale garbage from free space"
    return shown_source(workload, source)


def _attributes(entry: Entry) -> Iterable[str]:
    return [f'{name} = "{bytes.fromhex(value).decode(errors="backslashreplace")}"' for name, value in entry.xattrs]
