"""What two outcomes are compared by, and the words for how they differ.

The words name what differs and nothing else, so differences of one kind are one group (harness/hunting/causes.py).
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from postcrash.model import Entry, Observation, Tree, Workload
from postcrash.model.agreement import strange_part
from postcrash.model.segments import Segment
from postcrash.properties.wording import shown_source

_SHOWN_MAX = 3


class Nature(NamedTuple):
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


class Natures(NamedTuple):
    """All of an outcome except the bytes of files."""

    mount_errno: int
    names: tuple[Nature, ...]
    is_repaired: bool
    aged: str
    """What is wrong with the files of an aged image."""


def natures(observation: Observation) -> Natures:
    """What an observation is compared by before the bytes of its files are."""
    tree = observation.tree
    firsts: dict[int, str] = {}
    for path in tree:
        firsts.setdefault(tree[path].inode, path)
    names = tuple(_nature(tree[path], firsts[tree[path].inode]) for path in tree)
    return Natures(observation.mount_errno, names, observation.repair is not None, observation.aged)


def _nature(entry: Entry, first_name: str) -> Nature:
    own = (entry.path, entry.type, first_name, entry.error, entry.mode, entry.nlink, entry.size)
    return Nature(*own, entry.target, entry.xattrs)


def of_names(mine: Natures, theirs: Natures, removed: Collection[str] = ()) -> list[str]:
    """In words: the names that differ, each with what differs; what is missing comes first, then what is there.

    `removed` are names that an operation has taken away. If one of them is there, it is back.
    """
    here, there = ({nature.path: nature for nature in side.names} for side in (mine, theirs))
    changed = sorted(path for path in here | there if here.get(path) != there.get(path))
    missing = [f"{path} is missing" for path in changed if path not in here]
    more = [f"{path} is {'back' if path in removed else 'there'}" for path in changed if path not in there]
    both = [f"{path} {_difference(here[path], there[path])}" for path in changed if path in here and path in there]
    return _first([*missing, *more, *both], "names")


def _difference(here: Nature, there: Nature) -> str:
    if here.type != there.type or here.error != there.error:
        return f"is {_whole(here)}, not {_whole(there)}"
    pairs = zip(_fields(here).items(), _fields(there).values(), strict=True)
    told = [f"{field} {mine}, not {theirs}" for (field, mine), theirs in pairs if mine != theirs]
    if here.first_name != there.first_name:
        is_own = here.first_name == here.path  # no name that comes before this one is of the same file
        told.append(f"is {'not ' * is_own}the same file as {there.first_name if is_own else here.first_name}")
    return " and ".join(told)


def _whole(nature: Nature) -> str:
    if nature.error:
        return f"a {nature.type} that cannot be read (errno {nature.error})"
    size = f" of {nature.size} bytes" * (nature.type == "file")
    return f"a {nature.type}{size}" + f" to {nature.target}" * (nature.type == "symlink")


def _fields(nature: Nature) -> dict[str, str]:
    """What each field is, by the words before it."""
    names = ", ".join(f"{name}={value}" for name, value in nature.xattrs)
    return {
        "has size": f"{nature.size}",
        "has mode": f"{nature.mode:o}",
        "has link count": f"{nature.nlink}",
        "points to": nature.target,
        "has attributes": names or "none",
    }


def of_bytes(workload: Workload, found: Tree, known: Sequence[Tree]) -> list[str]:
    """In words: the bytes in which `found` differs from the nearest of the `known` trees, which have the same names."""
    strange = min((strange_parts(found, each) for each in known), key=len)
    if not strange:
        return ["files have contents that they never have together"]
    told = [
        f"{path} has bytes from {part.start} on that are {shown_source(workload, part.source)}"
        for path, part in strange.items()
    ]
    return _first(told, "files")


def strange_parts(found: Tree, known: Tree) -> dict[str, Segment]:
    """By path, the first bytes of each file that no version of `known` has. The trees have the same names."""
    parts = ((path, strange_part(found[path], known[path])) for path in found)
    return {path: part for path, part in parts if part is not None}


def _first(told: Sequence[str], of_what: str) -> list[str]:
    more = len(told) - _SHOWN_MAX
    return [*told[:_SHOWN_MAX], *[f"{more} more {of_what}"] * (more > 0)]
