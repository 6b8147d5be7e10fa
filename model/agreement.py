"""Do two trees hold the same bytes? Of one that is observed, each version that is asked about; of the other, any."""

from collections import Counter
from collections.abc import Iterator

from postcrash.model.choices import UndecidedBytes, settle
from postcrash.model.content import stretches
from postcrash.model.segments import Segment, Segments, clipped, merged
from postcrash.model.tree import Entry, Tree

_Possible = tuple[tuple[int, frozenset[int]], ...]
"""Components of the known tree with the versions that agree with the found bytes."""


def is_version_of(found: Tree, known: Tree) -> bool:
    """Whether some version of what `known` left open has the bytes of `found` in every file.

    The trees have the same names, types and sizes. Inside `every_answer` it is asked once for each way in which what
    `found` left open matters. Components that hold together several places of `known` have one version in all of them.
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


def _alone(known: Tree) -> frozenset[UndecidedBytes]:
    """Choices whose components hold together with nothing else."""
    choices = [choice for entry in known.values() for choice in entry.choices]
    count = Counter(choice.component for choice in choices)
    return frozenset(choice for choice in choices if count[choice.component] == 1)


def _each_part(found: Entry, known: Entry, alone: frozenset[UndecidedBytes]) -> Iterator[_Possible | None]:
    """For each part of a file: what must be so of `known` to have its bytes; None if nothing can be."""
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
