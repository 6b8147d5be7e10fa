"""Hunts that look at each workload twice: first with few recoveries, and then, if these do not cover it, with all.

So workloads that take minutes do not keep the others waiting. What a first look finds counts at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum, auto

from postcrash.harness.examination.campaign import Batch, FinishedPlan, examination_in
from postcrash.harness.examination.coverage import why_left_out
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.hunting.hunt import Hunt, HuntContext, Selected, digest
from postcrash.harness.hunting.probes import Probe
from postcrash.model import NO_TIME_FOR_MORE_LOOKS, Verdict, Workload
from postcrash.workloads import canonical

FIRST_LOOK = 64
"""The recoveries of a walked workload's first look. Nearly all workloads of ext4, btrfs and f2fs need no more."""
FIRST_LOOKS = {Probe.WALK: FIRST_LOOK, Probe.FSCK: 16, Probe.CRASH: 200}
"""The recoveries of a first look. An fsck costs many recoveries, so few are run. With 64 recoveries, second crashes
missed a planted bug in two minutes that they show in 20 s with 200 (jbd2-recovery-no-flush in tests/mutants)."""


class Novelty(Enum):
    """How a workload is related to those before it."""

    NEW = auto()
    SAME = auto()
    ALIKE = auto()
    """It differs from an earlier one only in names that mean nothing."""


class DistinctWorkloads:
    """Tells which workloads are new. Without `symmetry`, none is alike to another."""

    def __init__(self, *, symmetry: bool) -> None:
        self._symmetry = symmetry
        self._texts: set[bytes] = set()
        self._shapes: set[bytes] = set()

    def kind_of(self, workload: Workload) -> Novelty:
        """What the workload is, and remember it."""
        text, shape = digest(workload.to_text()), digest(canonical(workload))
        is_known, is_alike = text in self._texts, shape in self._shapes
        self._texts.add(text)
        self._shapes.add(shape)
        if is_known:
            return Novelty.SAME
        return Novelty.ALIKE if is_alike and self._symmetry else Novelty.NEW


class FirstLookHunt(Hunt[Selected]):
    """`_waiting` has the workloads that need a second look: each of their plans with the result of the first look."""

    def __init__(self, selection: Selected, context: HuntContext) -> None:
        super().__init__(selection, context)
        self._waiting: dict[int, list[tuple[Plan, Examination]]] = {}

    def _rounds(self) -> Iterator[Iterable[Batch]]:
        yield self._todo()
        if self._waiting:
            yield self._second_looks()

    def _todo(self) -> Iterator[Batch]:
        for number, workload in self._new_workloads():
            plans = [plan for plan in self._plans_of(number, workload) if not self._is_known(number, plan)]
            if plans:
                self._unfinished.add(number)
            batch = [(number, self._first_look(number, plan)) for plan in plans if not self._is_waiting(number, plan)]
            if batch:
                yield batch

    def _second_looks(self) -> Iterator[Batch]:
        for number, looks in list(self._waiting.items()):
            if self._is_over:
                return
            yield [(number, plan) for plan, _ in looks]

    def _end(self) -> None:
        """Count first looks for which there was no second one."""
        self._hunt_result.first_looks = len(self._waiting)
        for number, looks in self._waiting.items():
            for plan, result in looks:
                self._count(number, plan, _short_of_time(result))
                self._disk_done(number)

    def _first_look(self, number: int, plan: Plan) -> Plan:
        """The plan of the first look; the same plan if it is to be the only one."""
        budget, recoveries = plan.how.budget, FIRST_LOOKS[self._probe_of(number)]
        is_whole = budget.bound is None and budget.samples is None
        is_short = budget.recoveries is not None and budget.recoveries <= recoveries
        return plan if is_short or not is_whole else replace(plan, first_look=recoveries)

    def _is_waiting(self, number: int, plan: Plan) -> bool:
        """Whether the store has a first look at the plan, which then waits for the second one."""
        first = self._first_look(number, plan)
        row = None if first == plan else self._results.row(self._results.key(first))
        if row is None or not self._add_known_findings(number, plan, row):
            return False
        known = examination_in({**row, "findings": []}, self._results.store)
        self._waiting.setdefault(number, []).append((plan, known))
        return True

    def _done(self, done: FinishedPlan) -> None:
        result, whole = done.result, replace(done, plan=replace(done.plan, first_look=None))
        if whole.plan == done.plan:
            self._take_along(done)
        elif isinstance(result, Examination) and _is_open(done.plan, result):
            self._results.keep_consoles(done)
            self._waiting.setdefault(done.number, []).append((whole.plan, replace(result, findings=[])))
            self._keep(whole, replace(result, certificates=[]), self._results.key(done.plan))
            return
        super()._done(whole)

    def _take_along(self, done: FinishedPlan) -> None:
        """Add the first look at a plan, if there was one, to the second one."""
        looks = self._waiting.pop(done.number, [])
        others = [each for each in looks if each[0] != done.plan]
        if others:
            self._waiting[done.number] = others
        if isinstance(done.result, Examination):
            for _, first in (each for each in looks if each[0] == done.plan):
                done.result.follows(first)


def _short_of_time(result: Examination) -> Examination:
    """A first look whose reason for what was left out is the lack of time, and not its small budget.

    No line of a gate's baseline accepts a lack of time.
    """
    rulings = {
        name: replace(ruling, unknown=list(dict.fromkeys(map(_true_reason, ruling.open_questions))))
        for name, ruling in result.rulings.items()
    }
    return replace(result, rulings=rulings)


def _true_reason(reason: str) -> str:
    return reason if why_left_out(reason) is None else NO_TIME_FOR_MORE_LOOKS


def _is_open(plan: Plan, result: Examination) -> bool:
    """Whether looking further can show more that counts: with `Plan.enough`, nothing beyond a violation does."""
    is_enough = plan.enough is not None and result.verdict is Verdict.VIOLATED
    return bool(result.recording) and not result.is_whole and not is_enough
