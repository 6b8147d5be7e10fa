"""The hunt that is run if the user asks for no other: what finds most bugs in the first minutes, and soonest.

It mixes four sources of workloads and three probes of their crash states. What each is for:

- every workload of one operation of grammar `full`, with each set-up: most bugs need no more
- the corpus: bugs that were found in the past, and those that need a longer history
- workloads of two operations of `ace`, a sample: bugs between operations
- some of the first once more with the file system's checker: lost room, orphans, counters that no tree shows
- some of the first once more with a second crash, within the recovery: recoveries that cannot be interrupted

The sources take turns. The workloads of each come in an order of their own (`workloads/interactions.py`).
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice

from postcrash.corpus import for_recovery, of_fstests
from postcrash.harness.hunting.corpus import suits
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.space_hunt import Candidate, Shard
from postcrash.model import Workload
from postcrash.targets import Target
from postcrash.workloads import GRAMMARS, SETUPS, WorkloadSpace
from postcrash.workloads.interactions import Interaction, cover, interactions, interactions_of, weights

SINGLE = WorkloadSpace(GRAMMARS["full"], 1, tuple(SETUPS))
PAIRS = 300
"""The number of workloads of two operations."""
_SAMPLES: Mapping[Probe, tuple[int, str]] = {
    Probe.FSCK: (100, "once more with fsck"),
    Probe.CRASH: (60, "once more with a crash in recovery"),
}
"""How many workloads are looked at in this way as well, and how this is called."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Workloads from one place, looked at in one way, in their order. `turns` is how many of them are run in a row."""

    probe: Probe
    turns: int
    order: Iterator[Workload]


@cache
def pairs() -> tuple[WorkloadSpace, Sequence[int]]:
    """The space of two operations, and the numbers of the workloads that are drawn from it.

    They are the same in each hunt, so that hunts can be compared.
    """
    space = WorkloadSpace(GRAMMARS["ace"], 2)
    return space, sorted(random.Random(1).sample(range(len(space)), PAIRS))


class DefaultSpace:
    """The workloads of the default hunt on one target, in its order.

    probes  how crash states are looked at; the first one is `Probe.WALK`
    """

    def __init__(self, target: Target, probes: Sequence[Probe]) -> None:
        self.probes = tuple(probes)
        self._for_recovery = _about(target, for_recovery())
        self.corpus = (*self._for_recovery, *_about(target, of_fstests()))

    def __len__(self) -> int:
        return sum(self.counts.values())

    @property
    def counts(self) -> dict[str, int]:
        """How many workloads there are of each source, in words."""
        again = {_SAMPLES[probe][1]: _SAMPLES[probe][0] for probe in self.probes if probe is not Probe.WALK}
        mixed = {"of one operation": len(SINGLE), "of the corpus": len(self.corpus), "of two operations": PAIRS}
        return mixed | again

    def in_order(self) -> Iterator[tuple[Probe, Workload]]:
        """All of them, as they are run."""
        singles = {number: interactions_in(SINGLE, number) for number in range(len(SINGLE))}
        space, numbers = pairs()
        double = {number: interactions_in(space, number) for number in numbers}
        weigh = weights()[Probe.WALK.value]
        sources = [
            _Source(Probe.WALK, 10, map(SINGLE.whole, cover(singles, weigh))),
            _Source(Probe.WALK, 5, self._corpus_in_order(weigh)),
            _Source(Probe.WALK, 1, map(space.whole, cover(double, weigh))),
        ]
        for probe in self.probes[1:]:
            covered = map(SINGLE.whole, cover(singles, weights()[probe.value]))
            first = islice(chain(self._for_recovery, covered), _SAMPLES[probe][0])
            sources.append(_Source(probe, 1, first))
        return _in_turns(sources)

    def _corpus_in_order(self, weigh: Mapping[Interaction, float]) -> Iterator[Workload]:
        """Those for recovery first: there are few of them, and each is about something else."""
        first = len(self._for_recovery)
        later = {number: interactions_of(self.corpus[number]) for number in range(first, len(self.corpus))}
        return map(self.corpus.__getitem__, chain(range(first), cover(later, weigh)))


def _about(target: Target, workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    return tuple(workload.with_tail() for workload in workloads if suits(workload, target))


def _in_turns(sources: list[_Source]) -> Iterator[tuple[Probe, Workload]]:
    while sources:
        for source in list(sources):
            run = list(islice(source.order, source.turns))
            yield from ((source.probe, workload) for workload in run)
            if len(run) < source.turns:
                sources.remove(source)


def interactions_in(space: WorkloadSpace, number: int) -> frozenset[Interaction]:
    """The interactions of a workload of a space."""
    points = frozenset(point.word for point in space.grammar.points)
    return interactions(space.calls(number), space.setups[number % len(space.setups)], points)


@dataclass(frozen=True, slots=True)
class DefaultSelection:
    """Which workloads of the default hunt are run.

    limit     only the first so many of its order
    shard     (i, n): every n-th of these, beginning with the i-th
    symmetry  as of `Selection`
    disks     what is walked is run on each of these disks, the rest on the first
    """

    space: DefaultSpace
    shard: Shard = (1, 1)
    limit: int | None = None
    symmetry: bool = True
    disks: tuple[int | None, ...] = (None,)

    @property
    def of_all_shards(self) -> int:
        """How many workloads all shards together run."""
        return min(len(self.space), self.limit or len(self.space))

    @property
    def count(self) -> int:
        """How many workloads are selected."""
        first, step = self.shard
        return len(range(first - 1, self.of_all_shards, step))

    def candidates(self) -> Iterator[Candidate]:
        """The workloads of all shards, in the order of the default hunt."""
        first, step = self.shard
        chosen = islice(self.space.in_order(), self.of_all_shards)
        for number, (probe, workload) in enumerate(chosen):
            yield Candidate(number, probe, workload, number % step == first - 1)
