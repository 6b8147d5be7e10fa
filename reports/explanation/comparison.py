"""Compares what was found after a crash with what the workload's operations leave, path by path and in words.

If a finding is about a difference from a reference, such as another kernel, the reference's nearest outcome is
shown, too. Then a path differs if it is not as in the reference.
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
"""The most alternative contents of the same bytes that are listed."""


@dataclass(frozen=True, slots=True)
class _Sides:
    """The trees that are compared. `reference` is None if there is no reference."""

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
    """Compares all paths of any tree, and returns how many are left out: those without a difference first.

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
    found, allowed, in_progress = (entry_lines(path, tree, sides.workload) for tree in trees)
    differs, reference = found not in (allowed, in_progress), tuple[str, ...]()
    if sides.reference is not None:
        more_found, more_reference = _more_lines(sides.found.get(path), sides.reference.get(path))
        reference = (*entry_lines(path, sides.reference, sides.workload), *more_reference)
        found = (*found, *more_found)
        differs = _differs(path, sides.found, sides.reference)
    return PathComparison(
        path,
        found=_cut(found),
        allowed=_cut(allowed),
        in_progress=_cut(in_progress) if in_progress != allowed else (),
        differs=differs,
        reference=_cut(reference),
    )


def _differs(path: str, found: Tree, reference: Tree) -> bool:
    """Whether the path differs from the reference, in any version of contents that recovery left open."""
    entry, expected = found.get(path), reference.get(path)
    if entry is None or expected is None:
        return entry is not expected
    if found.names(entry.inode) != reference.names(expected.inode):
        return True
    fields = ("type", "error", "mode", "nlink", "size", "target", "xattrs")
    is_alike = all(getattr(entry, field) == getattr(expected, field) for field in fields)
    return not is_alike or strange_part(entry, expected) is not None


def _more_lines(found: Entry | None, reference: Entry | None) -> tuple[list[str], list[str]]:
    """Returns for both the properties that are shown only if a reference has other ones."""
    if found is None or reference is None or found.error or reference.error:
        return [], []
    modes = [[f"mode {entry.mode:o}"] * (found.mode != reference.mode) for entry in (found, reference)]
    links = [
        [f"{entry.nlink} links"] * (found.nlink != reference.nlink and entry.type == "dir")
        for entry in (found, reference)
    ]
    return modes[0] + links[0], modes[1] + links[1]


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    more = len(lines) - LINES_MAX
    return (*lines[:LINES_MAX], f"{more} more lines") if more > 0 else lines


def entry_lines(path: str, tree: Tree, workload: Workload) -> tuple[str, ...]:
    """Describes what is at `path` in `tree`."""
    entry = tree.get(path)
    if entry is None:
        return ("not there",)
    if entry.error:
        return (f"{entry.type}, cannot be read: {error_name(entry.error)}",)
    return (*_type(entry, tree), *_contents(entry, workload), *_attributes(entry))


def _type(entry: Entry, tree: Tree) -> Iterable[str]:
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
    """Says where bytes come from. If recovery left them open, all their possible sources are listed."""
    versions = part.versions if isinstance(part, UndecidedBytes) else ((part,),)
    sources = dict.fromkeys(" and ".join(_source(workload, run.source) for run in version) for version in versions)
    more = [f"{len(sources) - VERSIONS_MAX} others"] * (len(sources) > VERSIONS_MAX)
    return ", or ".join([*list(sources)[:VERSIONS_MAX], *more])


def _source(workload: Workload, source: str) -> str:
    if source == "zero":
        return "zeros"
    if source == "stale":
        return "stale garbage from free space"
    return shown_source(workload, source)


def _attributes(entry: Entry) -> Iterable[str]:
    return [f'{name} = "{bytes.fromhex(value).decode(errors="backslashreplace")}"' for name, value in entry.xattrs]
