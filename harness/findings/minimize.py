"""The smallest workload that breaks the same judge as a finding does, on the same target and device model."""

import json
from dataclasses import dataclass, replace
from typing import Any

from postcrash._core import Recording
from postcrash.harness.budget import Budget
from postcrash.harness.errors import CrashDiskEndedError, InfrastructureError, UsageError
from postcrash.harness.examination.campaign import Progress, run_plan
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import Judge
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.repair import ONLY_REPAIRED
from postcrash.harness.examination.result import Ruling
from postcrash.harness.findings.reduction import minimal
from postcrash.harness.guests.spare import Spare
from postcrash.model import Verdict, Workload, parse_workload
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import Store
from postcrash.targets import BaseImage, RecoveryKind, Target


@dataclass(frozen=True, slots=True)
class MinimalFinding:
    """A finding of a workload that cannot be made smaller; where it `is_cut_short`, perhaps it can.

    workload      without the tail that every workload is given
    tried         workloads that were examined; of these, `undecided`: not all was looked at, or the judge cannot tell
    is_cut_short  the time was over before everything smaller had been tried
    """

    finding: Finding
    workload: Workload
    tried: int
    undecided: int
    is_cut_short: bool = False


class OutOfTimeError(InfrastructureError):
    """The time was over before the finding's own workload had been run again."""


def recorded_how(store: Store, finding: Finding) -> dict[str, Any]:
    """What the recording of the finding's workload says of itself: `held`, `recorder` and more."""
    about = json.loads(Recording(store.recording_path(state_below(finding) or finding.recording)).metadata)
    return dict(about)


def plan_of(
    finding: Finding,
    target: Target,
    base: BaseImage,
    kernel: str,
    guest: str,
    recoveries: int | None,
    store: Store,
    judges: tuple[Judge, ...] = (),
) -> Plan:
    """What examines the finding's workload as it was examined, with only `judges`.

    Where only a repair before the mount breaks it, the crash states are mounted alone as well, to see that it stays so.
    Nothing is recovered where guests were lost while they ran the workload: to run it is enough.
    """
    below, metadata = state_below(finding), recorded_how(store, finding)
    kinds: tuple[RecoveryKind, ...] = ()
    if not finding.is_of_run:
        known = RecoveryKind.from_wire(finding.recover)
        ways = (False, True) if finding.message.endswith(ONLY_REPAIRED) else (known.is_repaired,)
        kinds = tuple(
            target.recovery(walk=known.walk, fsck=bool(known.fsck), use=known.use_after, repair=repair)
            for repair in ways
        )
    return Plan(
        target=target,
        base=base,
        kernel=kernel,
        guest=guest,
        workload=parse_workload(finding.workload_text, finding.workload_name),
        judges=judges,
        recoveries=kinds,
        how=Exploration(
            finding.model,
            Budget(recoveries, seconds=None),  # so that every run comes to the same minimum
            depth=1 if below is None else 2,
            held=metadata["held"],
            recorder=metadata.get("asked", metadata["recorder"]),
        ),
    )


def minimize(
    finding: Finding, plan: Plan, machine: Spare, store: Store, progress: Progress, *, fresh: bool = False
) -> MinimalFinding:
    """Look for the smallest workload, with `plan` of `plan_of`; the store then has its finding, linked from `finding`.

    A workload breaks the judge if a crash state of it is VIOLATED and, recovered once more, is so again. Raises
    InfrastructureError if the finding's own workload does not break it again, OutOfTimeError if there was no time for
    that. When the machine's time is over later, the smallest workload so far is given, and the same call goes on.
    """
    search = _Search(finding, plan, machine, store, progress, fresh)
    start, is_cut_short = plan.workload.without_tail(), False
    try:
        if not search.breaks(start):
            raise InfrastructureError(
                f"{finding.id}: its workload, run again, does not break {finding.checker} any more{search.reason}"
            )
        minimal(start, search.breaks)
    except OutOfTimeError:
        if not search.found:
            raise
        is_cut_short = True
    smallest, found = list(search.found.items())[-1]
    found = replace(found, minimal=found.id)
    for linked in (replace(finding, minimal=found.id), found):
        store.put_finding(linked)
    return MinimalFinding(found, smallest, search.tried, search.undecided, is_cut_short)


class _Search:
    """Examines workloads one by one."""

    def __init__(
        self, sought: Finding, plan: Plan, machine: Spare, store: Store, progress: Progress, fresh: bool
    ) -> None:
        self._judge, self._plan, self._machine = sought.checker, plan, machine
        self._only_repaired = sought.message.endswith(ONLY_REPAIRED)
        self._store, self._progress, self._fresh = store, progress, fresh
        self.found: dict[Workload, Finding] = {}
        """Workloads that break the judge, each smaller than the one before, with the simplest crash state of each."""
        self.tried = 0
        self.undecided = 0
        self.reason = ""

    def breaks(self, workload: Workload) -> bool:
        """Whether the judge is violated, and confirmed to be."""
        plan = replace(self._plan, workload=workload.with_tail(checkpoint=self._plan.workload.ends_in_checkpoint))
        try:
            result = run_plan(plan, self._machine, self._store, self._progress, fresh=self._fresh)
        except UsageError:  # an operation that this file system does not have
            return False
        except CrashDiskEndedError:
            self._machine.close()
            if self._machine.is_over:
                raise OutOfTimeError("the time was over before its workload had been run again") from None
            raise
        self.tried += 1
        ruling = result.rulings.get(self._judge, Ruling())
        self.undecided += ruling.verdict is Verdict.UNDECIDED
        self.reason = f": {ruling.reason}" if ruling.reason else ""
        witness = next(filter(self._is_such, result.findings), None)
        if witness is not None:
            self.found[workload] = witness
        return witness is not None

    def _is_such(self, finding: Finding) -> bool:
        """Whether it is of the same judge, and shown by the same ways to recover."""
        return finding.checker == self._judge and finding.message.endswith(ONLY_REPAIRED) == self._only_repaired
