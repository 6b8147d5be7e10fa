"""Orders the workloads of a hunt. Those that have most of what known bugs needed, and least in common, come first.

An **interaction** is a small part of a workload: a call, how it follows a set-up, what makes it durable afterwards.
A bug shows in nearly every workload that has the two or three interactions that it needs (Kuhn et al., *Software Fault
Interactions*, 2004), so workloads are ordered greedily, as covering arrays are built: the next one is the one whose
interactions weigh most, and each time that an interaction has been met its weight is halved. So each interaction is met
soon, and those that found bugs are met often. A workload with many interactions counts by their mean. `yields.toml`
has what found planted bugs; docs/hunting.md says how this was learned.
"""

import heapq
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from math import fsum
from pathlib import Path

from postcrash.model import Workload
from postcrash.model.tree import ROOT_PATH, parent
from postcrash.workloads.grammar import Call, Setup

Interaction = tuple[str, ...]
_FADES = 0.5
"""The factor by which an interaction's weight falls each time that it has been met."""
_CALLS_MAX = 40
"""The most operations of a workload whose interactions count, because each has some with all before it."""
_DURABLE = ("fsync", "fdatasync", "sync", "syncfs")
_AND = " + "
_YIELDS = Path(__file__).with_name("yields.toml")


def interactions(calls: Sequence[Call], setup: Setup, points: Collection[str]) -> frozenset[Interaction]:
    """The interactions of a workload. `points` are the words of its grammar that stand after calls."""
    found: set[Interaction] = {(setup,)}
    before: list[Call] = []
    for call in calls:
        if call.word in points:
            found |= {part for earlier in before for part in _made_durable(earlier, call, setup)}
            continue
        what, where = _what(call), _where(call)
        found |= {(what,), (what, setup), (what, where, call.range)}
        found |= {(_what(earlier), _relation(earlier, call.paths), what) for earlier in before}
        before.append(call)
    return frozenset(found)


def interactions_of(workload: Workload) -> frozenset[Interaction]:
    """The interactions of a workload that no grammar made: of its first operations, which are most of a long one's."""
    calls = [Call(each.word, tuple(filter(None, (each.path, each.to)))) for each in workload.without_tail().ops]
    return interactions(calls[:_CALLS_MAX], "synced" if workload.setup else "new", _DURABLE)


def _made_durable(call: Call, point: Call, setup: str) -> Iterator[Interaction]:
    how, what = f"{point.word} {_relation(call, point.paths)}", _what(call)
    yield from ((how,), (how, setup), (what, how), (what, how, setup))
    if call.range:
        yield what, call.range, point.word


def _what(call: Call) -> str:
    return f"{call.word} {call.mode}".strip()


def _where(call: Call) -> str:
    """Whether its paths are in the root, in a folder, or in two."""
    folders = {parent(path) for path in call.paths}
    if len(folders) > 1:
        return "across"
    return "root" if folders <= {ROOT_PATH} else "folder"


def _relation(call: Call, paths: Sequence[str]) -> str:
    """How the paths of a later operation are related to those of `call`."""
    return " ".join(_relation_to(call, path) for path in paths) or "all"


def _relation_to(call: Call, path: str) -> str:
    for place, own in zip(("first", "second"), call.paths, strict=False):
        if path == own:
            return place
    for place, own in zip(("parent", "parent of second"), call.paths, strict=False):
        if path == parent(own):
            return place
    return "other"


@cache
def weights() -> Mapping[str, Mapping[Interaction, float]]:
    """What interactions weigh, for each probe of the default hunt: 1, and 1 more for each mutant that one found.

    Those that found none are left out.
    """
    return {
        probe: {tuple(name.split(_AND)): 1.0 + count for name, count in _counted(mutants).items()}
        for probe, mutants in tomllib.loads(_YIELDS.read_text()).items()
    }


def _counted(mutants: Mapping[str, Sequence[str]]) -> Counter[str]:
    return Counter(name for names in mutants.values() for name in names)


def name_of(interaction: Interaction) -> str:
    """An interaction as `yields.toml` has it."""
    return _AND.join(interaction)


def cover(of: Mapping[int, Collection[Interaction]], weight: Mapping[Interaction, float]) -> Iterator[int]:
    """Yield the numbers of workloads in the greedy order. `of` has the interactions of each.

    An interaction without a `weight` weighs 1. Of workloads that weigh the same, the earlier one comes first.
    """
    met: Counter[Interaction] = Counter()

    def gain(number: int) -> float:
        parts = of[number]
        # fsum rounds once, so that the order of a set, which differs from process to process, makes no difference.
        return fsum(weight.get(each, 1.0) * _FADES ** met[each] for each in parts) / max(len(parts), 1)

    heap = [(-gain(number), place, number) for place, number in enumerate(of)]
    heapq.heapify(heap)
    while heap:
        _, place, number = heap[0]
        now = -gain(number)  # gains only get smaller, so that the first one whose gain is up to date is the largest
        if len(heap) > 1 and (now, place) > min(heap[1:3])[:2]:
            heapq.heapreplace(heap, (now, place, number))
            continue
        heapq.heappop(heap)
        met.update(of[number])
        yield number
