"""Compares two outcomes and describes their differences in words.

The words name what differs and nothing else, so differences of one kind are one group (harness/hunting/causes.py).
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from postcrash.model import Entry, Observation, Tree, Workload
from postcrash.model.agreement import strange_part
from postcrash.model.segments import Segment
from postcrash.properties.wording import shown_source

_SHOWN_MAX = 3


class EntryMetadata(NamedTuple):
    """All of an entry except the bytes of a file. `first_name` identifies its inode: the first of the inode's names."""

    path: str
    type: str
    first_name: str
    error: int
    mode: int
    nlink: int | None
    size: int
    target: str
    xattrs: tuple[tuple[str, str], ...]


class OutcomeMetadata(NamedTuple):
    """All of an outcome except the bytes of files."""

    mount_errno: int
    names: tuple[EntryMetadata, ...]
    is_repaired: bool
    aged: str
    """What is wrong with the files of an aged image."""


def metadata_of(observation: Observation) -> OutcomeMetadata:
    """The metadata of an observation, which are compared before the bytes of files."""
    tree = observation.tree
    firsts: dict[int, str] = {}
    for path in tree:
        firsts.setdefault(tree[path].inode, path)
    names = tuple(_entry_metadata(tree[path], firsts[tree[path].inode]) for path in tree)
    return OutcomeMetadata(observation.mount_errno, names, observation.repair is not None, observation.aged)


def _entry_metadata(entry: Entry, first_name: str) -> EntryMetadata:
    own = (entry.path, entry.type, first_name, entry.error, entry.mode, entry.nlink, entry.size)
    return EntryMetadata(*own, entry.target, entry.xattrs)


def of_names(mine: OutcomeMetadata, theirs: OutcomeMetadata, removed: Collection[str] = ()) -> list[str]:
    """In words: the names that differ, each with what differs; what is missing comes first, then what is there.

    `removed` are names that an operation has taken away. If one of them is there, it is back.
    """
    here, there = ({entry.path: entry for entry in side.names} for side in (mine, theirs))
    changed = sorted(path for path in here | there if here.get(path) != there.get(path))
    missing = [f"{path} is missing" for path in changed if path not in here]
    more = [f"{path} is {'back' if path in removed else 'there'}" for path in changed if path not in there]
    both = [f"{path} {_difference(here[path], there[path])}" for path in changed if path in here and path in there]
    return _first([*missing, *more, *both], "names")


def _difference(here: EntryMetadata, there: EntryMetadata) -> str:
    if here.type != there.type or here.error != there.error:
        return f"is {_whole(here)}, not {_whole(there)}"
    pairs = zip(_fields(here).items(), _fields(there).values(), strict=True)
    differences = [f"{field} {mine}, not {theirs}" for (field, mine), theirs in pairs if mine != theirs]
    if here.first_name != there.first_name:
        is_own = here.first_name == here.path  # no name that comes before this one is of the same file
        differences.append(f"is {'not ' * is_own}the same file as {there.first_name if is_own else here.first_name}")
    return " and ".join(differences)


def _whole(entry: EntryMetadata) -> str:
    if entry.error:
        return f"a {entry.type} that cannot be read (errno {entry.error})"
    size = f" of {entry.size} bytes" * (entry.type == "file")
    return f"a {entry.type}{size}" + f" to {entry.target}" * (entry.type == "symlink")


def _fields(entry: EntryMetadata) -> dict[str, str]:
    """What each field is, by the words before it."""
    names = ", ".join(f"{name}={value}" for name, value in entry.xattrs)
    return {
        "has size": f"{entry.size}",
        "has mode": f"{entry.mode:o}",
        "has link count": f"{entry.nlink}",
        "points to": entry.target,
        "has attributes": names or "none",
    }


def of_bytes(workload: Workload, found: Tree, known: Sequence[Tree]) -> list[str]:
    """In words: the bytes in which `found` differs from the nearest of the `known` trees, which have the same names."""
    strange = min((strange_parts(found, each) for each in known), key=len)
    if not strange:
        return ["files have contents that they never have together"]
    differences = [
        f"{path} has bytes from {part.start} on that are {shown_source(workload, part.source)}"
        for path, part in strange.items()
    ]
    return _first(differences, "files")


def strange_parts(found: Tree, known: Tree) -> dict[str, Segment]:
    """By path, the first bytes of each file that no version of `known` has. The trees have the same names."""
    parts = ((path, strange_part(found[path], known[path])) for path in found)
    return {path: part for path, part in parts if part is not None}


def _first(differences: Sequence[str], of_what: str) -> list[str]:
    more = len(differences) - _SHOWN_MAX
    return [*differences[:_SHOWN_MAX], *[f"{more} more {of_what}"] * (more > 0)]
