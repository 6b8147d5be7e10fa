"""Hunting through the workloads of a space, in an order that soon reaches every part of it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple, Protocol

from postcrash.harness.hunting.first_looks import DistinctWorkloads, FirstLookHunt, Novelty
from postcrash.harness.hunting.hunt import WorkloadSelection
from postcrash.harness.hunting.probes import Probe
from postcrash.model import Workload
from postcrash.workloads import WorkloadSpace

GOLDEN = 0.6180339887498949
Shard = tuple[int, int]
"""(i, n): the i-th of n shards; i counts from 1."""


class Candidate(NamedTuple):
    """A workload with its number and probe, and whether it is of this shard."""

    number: int
    probe: Probe
    workload: Workload
    is_own: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Which workloads of a space are run.

    sample    only this many workloads, drawn with `seed`
    shard     (i, n): every n-th of these, beginning with the i-th
    symmetry  if workloads differ only in names that mean nothing, only the first is run
    disks     each workload is run on each of these disks; they say when writes complete, as `Exploration.held` does
    """

    space: WorkloadSpace
    shard: Shard = (1, 1)
    sample: int | None = None
    seed: int = 1
    symmetry: bool = True
    disks: tuple[int | None, ...] = (None,)

    def of_all_shards(self) -> Sequence[int]:
        """The numbers of the workloads that all shards together run, ascending."""
        every: Sequence[int] = range(len(self.space))
        if self.sample is not None and self.sample < len(every):
            return sorted(random.Random(self.seed).sample(every, self.sample))
        return every

    def numbers(self) -> Sequence[int]:
        """The numbers of the selected workloads, ascending."""
        first, step = self.shard
        return self.of_all_shards()[first - 1 :: step]

    @property
    def count(self) -> int:
        """How many workloads are selected."""
        return len(self.numbers())

    def candidates(self) -> Iterator[Candidate]:
        """The workloads of all shards, in an order that soon reaches every part of the space."""
        first, step = self.shard
        every = self.of_all_shards()
        for position in spread(len(every)):
            number = every[position]
            yield Candidate(number, Probe.WALK, self.space.whole(number), position % step == first - 1)


class SpaceSelection(WorkloadSelection, Protocol):
    """Workloads that are divided among shards."""

    @property
    def symmetry(self) -> bool: ...
    def candidates(self) -> Iterator[Candidate]: ...


class SpaceHunt(FirstLookHunt[SpaceSelection]):
    """Hunts through the workloads of a space, each with its probe."""

    def _new_workloads(self) -> Iterator[tuple[int, Workload]]:
        """Those of this shard, of the workloads that are left if equal and alike ones of all shards are left out.

        So all shards together run what a hunt without shards runs. Workloads with different probes are not equal.
        """
        distinct = {probe: DistinctWorkloads(symmetry=self._selection.symmetry) for probe in Probe}
        for number, probe, workload, is_own in self._selection.candidates():
            if self._is_over:
                return
            novelty = distinct[probe].kind_of(workload)
            self._reached += is_own
            if is_own and novelty is Novelty.NEW:
                self._probes[number] = probe
                yield number, workload
            elif is_own:
                self._hunt_result.same += novelty is Novelty.SAME
                self._hunt_result.alike += novelty is Novelty.ALIKE
                self._progress.skipped()


def spread(count: int) -> Iterator[int]:
    """All numbers below `count`, in steps of its golden section: each beginning is spread over the whole."""
    step = max(round(count * GOLDEN), 1)
    while gcd(step, count) != 1:
        step += 1
    return (position * step % count for position in range(count))
