"""Compares what was found after a crash with what the workload's operations leave, path by path and in words.

If a finding is about a difference from a reference, such as another kernel, the reference's nearest outcome stands
there too. Then a path differs if it is not as the reference shows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from postcrash.model import Entry, History, Segment, Tree, Workload
from postcrash.model.agreement import strange_part
from postcrash.model.choices import UndecidedBytes
from postcrash.model.observation import error_name
from postcrash.model.tree import MADE_BY_MKFS, walk_order
from postcrash.properties.wording import shown_source
from postcrash.store.explanation_data import PathComparison

PATHS_MAX = 60
LINES_MAX = 10
"""How many lines one side may have about one path."""
NAMES_MAX = 4
VERSIONS_MAX = 4
"""How many of the contents that some bytes can have are told."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """The trees that are compared. `reference` is None if there is no other side."""

    workload: Workload
    found: Tree
    after: Tree
    in_progress: Tree
    reference: Tree | None

    def paths(self) -> list[str]:
        """Every path, folders before what is in them."""
        trees = (self.found, self.after, self.in_progress, self.reference or Tree())
        return sorted(set().union(*(tree.paths() for tree in trees)) - MADE_BY_MKFS, key=walk_order)


def compare(history: History, found: Tree, reference: Tree | None = None) -> tuple[tuple[PathComparison, ...], int]:
    """All paths of any side, and how many had to be left out. Paths without a difference are left out first.

    `reference` is what the reference shows, if `found` was compared with one. Raises `SimulationError` if the workload
    cannot succeed.
    """
    after, in_progress = history.trees[history.returned], history.trees[history.started]
    sides = _Sides(history.workload, found, after, in_progress, reference)
    compared = [_compared(path, sides) for path in sides.paths()]
    if len(compared) <= PATHS_MAX:
        return tuple(compared), 0
    differing = [number for number, comparison in enumerate(compared) if comparison.differs]
    equal = [number for number, comparison in enumerate(compared) if not comparison.differs]
    chosen = sorted([*differing, *equal][:PATHS_MAX])
    return tuple(compared[number] for number in chosen), len(compared) - len(chosen)


def _compared(path: str, sides: _Sides) -> PathComparison:
    trees = (sides.found, sides.after, sides.in_progress)
    found, allowed, done = (entry_lines(path, tree, sides.workload) for tree in trees)
    differs, theirs = found not in (allowed, done), tuple[str, ...]()
    if sides.reference is not None:
        more, more_theirs = _unlike(sides.found.get(path), sides.reference.get(path))
        theirs = (*entry_lines(path, sides.reference, sides.workload), *more_theirs)
        found = (*found, *more)
        differs = _is_unlike(path, sides.found, sides.reference)
    shown = (_cut(found), _cut(allowed), _cut(done) if done != allowed else ())
    return PathComparison(path, *shown, differs, _cut(theirs))


def _is_unlike(path: str, found: Tree, reference: Tree) -> bool:
    """Whether the path is not as the reference shows it, in any version of contents that its recovery left open."""
    mine, theirs = found.get(path), reference.get(path)
    if mine is None or theirs is None:
        return mine is not theirs
    if found.names(mine.inode) != reference.names(theirs.inode):
        return True
    fields = ("type", "error", "mode", "nlink", "size", "target", "xattrs")
    is_alike = all(getattr(mine, field) == getattr(theirs, field) for field in fields)
    return not is_alike or strange_part(mine, theirs) is not None


def _unlike(mine: Entry | None, theirs: Entry | None) -> tuple[list[str], list[str]]:
    """For both, what else is told of a path, because only a comparison with a reference asks for it."""
    if mine is None or theirs is None or mine.error or theirs.error:
        return [], []
    told: tuple[list[str], list[str]] = [], []
    for entry, lines in zip((mine, theirs), told, strict=True):
        if mine.mode != theirs.mode:
            lines.append(f"mode {entry.mode:o}")
        if mine.nlink != theirs.nlink and entry.type == "dir":
            lines.append(f"{entry.nlink} links")
    return told


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
    parts: list[Segment | UndecidedBytes] = [*entry.segments, *entry.choices]
    parts.sort(key=lambda part: part.start)
    return [f"bytes {part.start} to {part.end}: {_sources(workload, part)}" for part in parts]


def _sources(workload: Workload, part: Segment | UndecidedBytes) -> str:
    """Where bytes are from. Of bytes that one recovery left open, each content that they can have."""
    versions = part.versions if isinstance(part, UndecidedBytes) else ((part,),)
    told = dict.fromkeys(" and ".join(_source(workload, run.source) for run in version) for version in versions)
    more = [f"{len(told) - VERSIONS_MAX} others"] * (len(told) > VERSIONS_MAX)
    return ", or ".join([*list(told)[:VERSIONS_MAX], *more])


def _source(workload: Workload, source: str) -> str:
    if source == "zero":
        return "zeros"
    if source == "stale":
        return "stale garbage from free space"
    return shown_source(workload, source)


def _attributes(entry: Entry) -> Iterable[str]:
    return [f'{name} = "{bytes.fromhex(value).decode(errors="backslashreplace")}"' for name, value in entry.xattrs]
