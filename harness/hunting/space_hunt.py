"""Hunting through the workloads of a space, in an order that soon reaches every part of it.

Each workload gets a first look, of few recoveries. Those that it does not cover get all of their budget when each of
the others has had its first look. So workloads that take minutes do not keep the others waiting.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from postcrash.harness.examination.campaign import Batch, Crew, FinishedPlan, examination_in, keep_consoles
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.hunting.hunt import Hunt, HuntProgress, digest, key_of
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.model import Verdict, Workload
from postcrash.reports.store.store import Store
from postcrash.workloads import WorkloadSpace, canonical

FIRST_LOOK = 64
"""The recoveries of a workload's first look. Nearly all workloads of ext4, btrfs and f2fs need no more."""
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


def hunt(
    selection: Selection,
    plan: Plan,
    crew: Crew,
    store: Store,
    progress: HuntProgress,
    *,
    fresh: bool = False,
    until: float | None = None,
) -> HuntResult:
    """Run each selected workload in place of the workload of `plan`. Reuses results of the store unless `fresh`.

    The hunt ends early if it is interrupted or the monotonic clock reaches `until`. What was finished is in the store.
    """
    return _SpaceHunt(selection, plan, store, progress, fresh, until).run(crew)


class _SpaceHunt(Hunt[Selection]):
    """`_waiting` has the workloads that want a second look: for each of their plans, what the first look came to."""

    _reached = 0

    def __init__(self, *asked: Any) -> None:
        super().__init__(*asked)
        self._waiting: dict[int, list[tuple[Plan, Examination]]] = {}

    def _not_run(self) -> int:
        return len(self._selection.numbers()) - self._reached + len(self._open)

    def _rounds(self) -> Iterator[Iterable[Batch]]:
        yield self._todo()
        if self._waiting:
            yield self._second_looks()

    def _todo(self) -> Iterator[Batch]:
        for number, workload in self._distinct():
            plans = [plan for plan in self._plans(workload) if not self._is_known(number, plan)]
            if plans:
                self._open.add(number)
            batch = [(number, self._glance(plan)) for plan in plans if not self._is_waiting(number, plan)]
            if batch:
                yield batch

    def _second_looks(self) -> Iterator[Batch]:
        for number, looks in list(self._waiting.items()):
            if self._is_over:
                return
            yield [(number, plan) for plan, _ in looks]

    def _end(self) -> None:
        """Count first looks for which there was no second one."""
        for number, looks in self._waiting.items():
            for plan, result in looks:
                self._count(number, plan, result)
                self._disk_done(number)

    def _glance(self, plan: Plan) -> Plan:
        """The plan of the first look; the same plan if it is to be the only one."""
        budget = plan.how.budget
        is_whole = budget.bound is None and budget.samples is None
        is_short = budget.recoveries is not None and budget.recoveries <= FIRST_LOOK
        return plan if is_short or not is_whole else replace(plan, glance=FIRST_LOOK)

    def _is_waiting(self, number: int, plan: Plan) -> bool:
        """Whether the store has a first look at the plan, which then waits for the second one."""
        glance = self._glance(plan)
        row = None if self._fresh or glance == plan else self._store.get_run(key_of(glance))
        if row is not None:
            self._waiting.setdefault(number, []).append((plan, examination_in(row, self._store)))
        return row is not None

    def _done(self, done: FinishedPlan) -> None:
        result, whole = done.result, replace(done, plan=replace(done.plan, glance=None))
        if whole.plan == done.plan:
            self._take_along(done)
        elif isinstance(result, Examination) and _is_open(result):
            self._wait(whole, result, key_of(done.plan))
            return
        super()._done(whole)

    def _take_along(self, done: FinishedPlan) -> None:
        """Add what the first look at a plan, if there was one, noticed and the second one need not notice again."""
        looks = self._waiting.pop(done.number, [])
        others = [each for each in looks if each[0] != done.plan]
        if others:
            self._waiting[done.number] = others
        if isinstance(done.result, Examination):
            for _, first in (each for each in looks if each[0] == done.plan):
                done.result.follows(first)

    def _wait(self, done: FinishedPlan, result: Examination, key: str) -> None:
        """Have a plan wait for its second look. Nothing was found that would have to be kept."""
        keep_consoles(done, self._store)
        shown = replace(result, certificates=[])
        self._waiting.setdefault(done.number, []).append((done.plan, shown))
        self._batch[key] = shown.to_json()

    def _distinct(self) -> Iterator[tuple[int, Workload]]:
        """Those of this shard, of the workloads that are left if equal and alike ones of all shards are left out.

        So all shards together run what a hunt without shards runs.
        """
        first, step = self._selection.shard
        every = self._selection.of_all_shards()
        texts: set[bytes] = set()
        shapes: set[bytes] = set()
        for position in spread(len(every)):
            if self._is_over:
                return
            number, is_own = every[position], position % step == first - 1
            self._reached += is_own
            workload = self._selection.space.whole(number)
            text, shape = digest(workload.to_text()), digest(canonical(workload))
            is_new, is_first = text not in texts, shape not in shapes
            texts.add(text)
            shapes.add(shape)
            if not is_own:
                continue
            if not is_new:
                self._hunted.same += 1
            elif self._selection.symmetry and not is_first:
                self._hunted.alike += 1
            else:
                yield number, workload
                continue
            self._progress.skipped()


def _is_open(result: Examination) -> bool:
    """Whether looking further can change the verdict."""
    return bool(result.recording) and not result.is_whole and result.verdict is not Verdict.VIOLATED


def spread(count: int) -> Iterator[int]:
    """All numbers below `count`, in steps of its golden section: each beginning is spread over the whole."""
    step = max(round(count * GOLDEN), 1)
    while gcd(step, count) != 1:
        step += 1
    return (position * step % count for position in range(count))
