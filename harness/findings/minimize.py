"""Find the smallest workload that breaks the same judge as a finding, on the same target and device model."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from postcrash.harness.errors import CrashDiskEndedError, InfrastructureError, UsageError
from postcrash.harness.examination.campaign import Progress, run_plan
from postcrash.harness.examination.comparison import recorded_alike
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import plan_again
from postcrash.harness.examination.recording_metadata import provenance, recorded_base
from postcrash.harness.examination.repair import ONLY_REPAIRED
from postcrash.harness.examination.result import Ruling
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.reference import judges_of
from postcrash.harness.findings.reduction import minimal
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.model import Verdict, Workload
from postcrash.store.records import Finding
from postcrash.store.store import Store


@dataclass(frozen=True, slots=True)
class MinimalFinding:
    """A finding of a workload that cannot be made smaller. If it `is_cut_short`, a smaller one may exist.

    workload      the workload without the tail that every workload is given
    tried         the number of workloads that were examined
    undecided     how many of these were not explored completely, or left the judge unable to tell
    is_cut_short  the time was over before everything smaller had been tried
    """

    finding: Finding
    workload: Workload
    tried: int
    undecided: int
    is_cut_short: bool = False


IsLike = Callable[[Finding], bool]
MINIMIZING_SECONDS = 60.0
"""The time to minimize the workloads of all groups without --time, and the most that is reserved of --time."""
MINIMIZING_SHARE = 1 / 4
"""The share of --time that is reserved for minimizing."""


def kept_for_minimizing(seconds_max: float) -> float:
    """Returns how many of `seconds_max` seconds are reserved for minimizing."""
    return min(seconds_max * MINIMIZING_SHARE, MINIMIZING_SECONDS)


class OutOfTimeError(InfrastructureError):
    """The time was over before the finding's own workload had been run again."""


def minimize(
    finding: Finding,
    plan: Plan,
    machine: Spare,
    store: Store,
    progress: Progress,
    *,
    fresh: bool = False,
    is_like: IsLike = lambda _: True,
) -> MinimalFinding:
    """Looks for the smallest workload, with `plan` of `plan_again`.

    In the store, `finding` is linked to the finding of that workload, if this was found in a guest like its own.
    A workload breaks the judge if one of its crash states is VIOLATED, and VIOLATED again when recovered once more.
    `is_like` must accept the finding. Each workload has at most as many findings as the plan's `findings_max`.
    Raises UsageError for a workload that runs programs, InfrastructureError if the finding's own workload does not
    break the judge again, and OutOfTimeError if there was no time to try this. If the machine's time is over later,
    returns the smallest workload so far; the same call made again goes on from there.
    """
    if plan.workload.runs_programs:
        raise UsageError(f"{finding.id}: its workload runs a program, and what programs do is not made smaller")
    search = _Search(finding, plan, machine=machine, store=store, progress=progress, fresh=fresh, is_like=is_like)
    start, is_cut_short = plan.workload.without_tail(), False
    try:
        if not search.breaks(start):
            raise InfrastructureError(
                f"{finding.id}: its workload, run again on {plan.kernel}, does not break {finding.checker} any more"
                f"{search.reason}"
            )
        minimal(start, search.breaks)
    except OutOfTimeError:
        if not search.found:
            raise
        is_cut_short = True
    smallest, found = list(search.found.items())[-1]
    found = replace(found, minimal=found.id)
    # What another kernel shows, or the same one with other modules, is no smaller form of the finding.
    if finding.guest == plan.guest:
        store.put_finding(replace(finding, minimal=found.id))
    store.put_finding(found)
    return MinimalFinding(found, smallest, search.tried, search.undecided, is_cut_short)


_WITHIN_MAX = 8
"""Findings of each workload among which one of a crash within recovery is looked for."""


def minimized_on(
    machine: Spare,
    session: Session,
    finding: Finding,
    recoveries: int | None,
    fresh: bool,
    progress: Progress,
    *,
    findings_max: int = 1,
    is_like: IsLike = lambda _: True,
) -> MinimalFinding:
    """Minimize `finding` on `machine`, which can record as the finding's workload was recorded.

    Workloads begin with the base image that the store keeps: no program runs that a recording names.
    """
    target, store, kernel = session.target_of(finding), session.store, session.kernel.label
    provenance_of_run, base = provenance(store, finding), recorded_base(store, finding)
    assert session.explainer is not None
    plan = plan_again(
        finding,
        target,
        base,
        provenance_of_run,
        kernel=kernel,
        guest=session.guest(),
        built=session.build(),
        explainer=session.explainer,
        recoveries_max=recoveries,
    )
    session.require(target, plan.recoveries)
    with judges_of(session, finding, target, plan.how) as judges:
        how = recorded_alike(plan.how, judges)
        if state_below(finding) is not None:  # a finding of one crash would take its place if there were one only
            findings_max = max(findings_max, _WITHIN_MAX)
        plan = replace(plan, judges=judges, how=how, findings_max=findings_max)
        return minimize(finding, plan, machine, store, progress, fresh=fresh, is_like=is_like)


class _Search:
    """Examines workloads one by one."""

    def __init__(
        self,
        finding: Finding,
        plan: Plan,
        machine: Spare,
        store: Store,
        progress: Progress,
        fresh: bool,
        is_like: IsLike,
    ) -> None:
        self._judge, self._plan, self._machine = finding.checker, plan, machine
        self._is_like = is_like
        self._only_repaired = finding.message.endswith(ONLY_REPAIRED)
        self._is_within = state_below(finding) is not None
        self._store, self._progress, self._fresh = store, progress, fresh
        self.found: dict[Workload, Finding] = {}
        """Workloads that break the judge, with their findings. Each workload is smaller than the one before."""
        self.tried = 0
        self.undecided = 0
        self.reason = ""

    def breaks(self, workload: Workload) -> bool:
        """Whether the workload breaks the judge, and the violation is confirmed."""
        plan = replace(self._plan, workload=workload.with_tail(checkpoint=self._plan.workload.ends_in_checkpoint))
        try:
            result = self._machine.twice(
                lambda: run_plan(plan, self._machine, self._store, self._progress, fresh=self._fresh)
            )
        except UsageError:  # an operation that this file system does not have
            return False
        except CrashDiskEndedError:
            if self._machine.is_over:
                raise OutOfTimeError("the time was over before its workload had been run again") from None
            raise
        self.tried += 1
        ruling = result.rulings.get(self._judge, Ruling())
        self.undecided += ruling.verdict is Verdict.UNDECIDED
        self.reason = f": {ruling.reason}" if ruling.reason else ""
        witness = next(filter(self._is_alike, result.findings), None)
        if witness is not None:
            self.found[workload] = witness
        return witness is not None

    def _is_alike(self, finding: Finding) -> bool:
        """Whether the finding has the same judge and the same kinds of recovery, and `is_like` accepts it."""
        is_same = finding.checker == self._judge and finding.message.endswith(ONLY_REPAIRED) == self._only_repaired
        is_within = state_below(finding) is not None
        return is_same and is_within == self._is_within and self._is_like(finding)
