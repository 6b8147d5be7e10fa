"""Hunting through the workloads of a space, in an order that soon reaches every part of it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from postcrash.harness.hunting.first_looks import DistinctWorkloads, FirstLookHunt
from postcrash.model import Workload
from postcrash.workloads import WorkloadSpace

GOLDEN = 0.6180339887498949
Shard = tuple[int, int]
"""(i, n): the i-th of n shards; i counts from 1."""


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


class SpaceHunt(FirstLookHunt[Selection]):
    """Hunts through the workloads of a space."""

    def _new_workloads(self) -> Iterator[tuple[int, Workload]]:
        """Those of this shard, of the workloads that are left if equal and alike ones of all shards are left out.

        So all shards together run what a hunt without shards runs.
        """
        first, step = self._selection.shard
        every = self._selection.of_all_shards()
        distinct = DistinctWorkloads(symmetry=self._selection.symmetry)
        for position in spread(len(every)):
            if self._is_over:
                return
            number, is_own = every[position], position % step == first - 1
            self._reached += is_own
            workload = self._selection.space.whole(number)
            if self._is_to_run(distinct.kind_of(workload), is_own=is_own):
                yield number, workload


def spread(count: int) -> Iterator[int]:
    """All numbers below `count`, in steps of its golden section: each beginning is spread over the whole."""
    step = max(round(count * GOLDEN), 1)
    while gcd(step, count) != 1:
        step += 1
    return (position * step % count for position in range(count))
