"""Compares the bytes of an observed tree, in each version that is asked for, with those that another tree may have."""

from collections import Counter
from collections.abc import Iterator

from postcrash.model.choices import UndecidedBytes, settle
from postcrash.model.content import runs, stretches
from postcrash.model.segments import Segment, Segments, clipped, merged
from postcrash.model.tree import Entry, Tree

_Possible = tuple[tuple[int, frozenset[int]], ...]
"""Components of the known tree, each with the versions that agree with the found bytes."""


def is_version_of(found: Tree, known: Tree) -> bool:
    """Whether some version of what `known` left open has the bytes of `found` in every file.

    The trees have the same names, types and sizes. `every_answer` asks this once for each way in which the choices of
    `found` make a difference. A component that decides several places of `known` has one version in all of them.
    """
    alive: dict[int, frozenset[int]] = {}
    alone = _alone(known)
    for path in found:
        for possible in _each_part(found[path], known[path], alone):
            if possible is None:
                return False
            for component, versions in possible:
                alive[component] = alive.get(component, versions) & versions
                if not alive[component]:
                    return False
    return True


def strange_part(found: Entry, known: Entry) -> Segment | None:
    """The first bytes of `found` that no version of `known` has at this place. None if it has each in some version.

    The versions of different places are not compared with each other. Choices of `found` are settled one by one.
    """
    for run in runs(found, 0, found.size):
        for theirs in stretches(known, run.start, run.end):
            own = clipped((run,), theirs.start, theirs.end)
            versions = theirs.versions if isinstance(theirs, UndecidedBytes) else ((theirs,),)
            if all(merged(version) != own for version in versions):
                return own[0]
    return None


def _alone(known: Tree) -> frozenset[UndecidedBytes]:
    """Choices whose component decides no other place."""
    choices = [choice for entry in known.values() for choice in entry.choices]
    count = Counter(choice.component for choice in choices)
    return frozenset(choice for choice in choices if count[choice.component] == 1)


def _each_part(found: Entry, known: Entry, alone: frozenset[UndecidedBytes]) -> Iterator[_Possible | None]:
    """For each part of a file: what must hold in `known` for it to have these bytes. None if nothing makes it so."""
    for part in stretches(found, 0, found.size):
        theirs = stretches(known, part.start, part.end)
        if isinstance(part, UndecidedBytes):
            yield settle(part, lambda version, theirs=theirs: _possible(version, theirs, alone))  # type: ignore[misc]
        else:
            yield _possible((part,), theirs, alone)


def _possible(
    mine: Segments, theirs: list[Segment | UndecidedBytes], alone: frozenset[UndecidedBytes]
) -> _Possible | None:
    possible: list[tuple[int, frozenset[int]]] = []
    for part in theirs:
        own = merged(clipped(mine, part.start, part.end))
        versions = part.versions if isinstance(part, UndecidedBytes) else ((part,),)
        agreeing = frozenset(n for n, version in enumerate(versions) if merged(version) == own)
        if not agreeing:
            return None
        if isinstance(part, UndecidedBytes) and part not in alone:
            possible.append((part.component, agreeing))
    return tuple(possible)
