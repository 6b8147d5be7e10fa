"""The smallest workload that breaks the same judge as a finding does, on the same target and device model."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from postcrash._core import Recording
from postcrash.harness.budget import Budget
from postcrash.harness.campaign import Progress, run_plan
from postcrash.harness.casualties import CASUALTY_JUDGE
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination import Ruling
from postcrash.harness.examine import Plan
from postcrash.harness.exploration import Exploration
from postcrash.harness.judges import judges_named
from postcrash.harness.machine import Machine, MachineSettings
from postcrash.harness.recording import settings_for_recorders
from postcrash.harness.recovery import SameRecovery, state_below
from postcrash.harness.reduction import minimal
from postcrash.model import Verdict, Workload, parse_workload
from postcrash.reports.records import Finding
from postcrash.reports.store import Store
from postcrash.targets import BaseImage, Target


@dataclass(frozen=True, slots=True)
class Minimized:
    """A finding of a workload that cannot be made smaller.

    workload   without the tail that every workload is given
    tried      workloads that were examined; of these, `undecided`: not all was looked at, or the judge cannot tell
    """

    finding: Finding
    workload: Workload
    tried: int
    undecided: int


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
) -> Plan:
    """What examines the finding's workload as it was examined, with only the judge that it breaks.

    Nothing is recovered where guests were lost while they ran the workload: to run it is enough.
    """
    below, metadata = state_below(finding), recorded_how(store, finding)
    kinds: tuple[dict[str, Any], ...] = ()
    if not finding.is_of_run:
        recover = finding.recover
        walk, fsck, use = recover["walk"], bool(recover["fsck"]), recover["use_after"]
        kinds = (target.recover_wire(walk=walk, fsck=fsck, use=use),)
    return Plan(
        target=target,
        base=base,
        kernel=kernel,
        guest=guest,
        workload=parse_workload(finding.workload_text, finding.workload_name),
        judges=() if finding.checker in (CASUALTY_JUDGE, SameRecovery.name) else judges_named([finding.checker]),
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
    finding: Finding, plan: Plan, settings: MachineSettings, store: Store, progress: Progress, *, fresh: bool = False
) -> Minimized:
    """Look for the smallest workload, with `plan` of `plan_of`; the store then has its finding, linked from `finding`.

    A workload breaks the judge if a crash state of it is VIOLATED and, recovered once more, is so again. Raises
    InfrastructureError if the finding's own workload does not break it again.
    """
    with ExitStack() as stack:
        machine = _lazy(settings_for_recorders(settings, [plan.how.recorder]), stack)
        search = _Search(finding.checker, plan, machine, store, progress, fresh)
        start = plan.workload.without_tail()
        if not search.breaks(start):
            raise InfrastructureError(
                f"{finding.id}: its workload, run again, does not break {finding.checker} any more{search.reason}"
            )
        smallest = minimal(start, search.breaks)
    found = search.found[smallest.to_text()]
    found = replace(found, minimal=found.id)
    for linked in (replace(finding, minimal=found.id), found):
        store.put_finding(linked)
    return Minimized(found, smallest, search.tried, search.undecided)


def _lazy(settings: MachineSettings, stack: ExitStack) -> Callable[[], Machine]:
    """One machine, started when it is first asked for."""
    running: list[Machine] = []

    def machine() -> Machine:
        if not running:
            running.append(stack.enter_context(Machine(settings, 0)))
        return running[0]

    return machine


class _Search:
    """Examines workloads one by one."""

    def __init__(
        self, judge: str, plan: Plan, machine: Callable[[], Machine], store: Store, progress: Progress, fresh: bool
    ) -> None:
        self._judge, self._plan, self._machine = judge, plan, machine
        self._store, self._progress, self._fresh = store, progress, fresh
        self.found: dict[str, Finding] = {}
        """By workload: the simplest crash state that breaks the judge."""
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
        self.tried += 1
        ruling = result.rulings.get(self._judge, Ruling())
        self.undecided += ruling.verdict is Verdict.UNDECIDED
        self.reason = f": {ruling.reason}" if ruling.reason else ""
        witness = next((finding for finding in result.findings if finding.checker == self._judge), None)
        if witness is not None:
            self.found[workload.to_text()] = witness
        return witness is not None
