"""Follows up failures: finds the smallest workload, and checks how often a failure shows again."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from postcrash.harness.budget import is_over
from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.campaign import Progress, run_plan
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.examination.recording_metadata import provenance
from postcrash.harness.examination.session import Session
from postcrash.harness.findings.flips import find_needed_writes
from postcrash.harness.findings.minimize import OutOfTimeError, minimized_on
from postcrash.harness.findings.replay import replay
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.running import FINDINGS_MAX, cause_of_finding, finding_fields, plans_of_part, workload_in
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.hunting.probes import Probe, probe_of
from postcrash.model import Verdict
from postcrash.store.gate_run import Failure, Share, validated
from postcrash.store.records import Finding
from postcrash.store.store import StoreError


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Follows up failures of parts until the monotonic clock reaches `until`; None: as long as it takes.

    confirm   how often a crash state is recovered again, and its workload recorded again; 0: neither
    progress  listens to the progress of a workload
    note      is called with what could not be done, and why
    """

    session: Session
    confirm: int
    until: float | None
    progress: Progress
    note: Callable[[str], None]

    def __call__(self, planned: PlannedPart, failure: Failure) -> Failure:
        """Returns the failure with its smallest workload, and with how often it showed again."""
        assert planned.kernel is not None
        session = self.session.on(planned.kernel)
        try:
            finding = session.store.finding(failure.found)
            if planned.application is None and self._has_time:
                smallest = self._smallest(planned, session, finding, failure.cause)
                failure = validated(failure, **finding_fields(planned, smallest))
            if self.confirm and self._has_time:
                failure = failure.model_copy(update={"states": self._states(session, finding, failure.cause)})
            if self._has_time:
                find_needed_writes(session, [session.store.finding(failure.finding)], self.note, self.until)
            if self.confirm and self._has_time and not finding.is_of_run:
                recordings = self._recordings(planned, session, failure.cause, finding)
                failure = failure.model_copy(update={"recordings": recordings})
        except OutOfTimeError:
            self.note(f"{failure.cause}: there was no time to follow it up")
        except (HarnessError, StoreError) as error:
            self.note(f"{failure.cause}: {error}")
        return failure

    def retry_known(self, planned: PlannedPart, failure: Failure) -> Failure:
        """Returns the failure with how often its crash state fails again. This shows whether a known failure varies."""
        assert planned.kernel is not None
        if not self.confirm or not self._has_time:
            return failure
        session = self.session.on(planned.kernel)
        try:
            finding = session.store.finding(failure.found or failure.finding)
            states = self._states(session, finding, failure.cause)
        except (HarnessError, StoreError) as error:
            self.note(f"{failure.cause}: {error}")
            return failure
        return failure.model_copy(update={"states": states})

    @property
    def _has_time(self) -> bool:
        return not is_over(self.until)

    def _smallest(self, planned: PlannedPart, session: Session, finding: Finding, cause: str) -> Finding:
        """The finding in the smallest workload. It has the same cause: another cause is another failure."""
        settings = settings_for_recorders(session.settings, [provenance(session.store, finding).recorder])
        with Spare(settings, self.until) as machine:
            return minimized_on(
                machine,
                session,
                finding,
                recoveries=planned.how.budget.recoveries,
                fresh=False,
                progress=self.progress,
                findings_max=FINDINGS_MAX,
                is_like=lambda other: cause_of_finding(planned, other) == cause,
            ).finding

    def _states(self, session: Session, finding: Finding, cause: str) -> Share | None:
        """How often the crash state fails, of the times when this could be decided. None if it never could."""
        verdicts = Counter(verdict for verdict, _ in replay(session, finding, self.confirm, self.until))
        if verdicts[Verdict.UNDECIDED]:
            share = f"{verdicts[Verdict.UNDECIDED]} of {self.confirm} times"
            self.note(f"{cause}: {share}, it could not be decided whether the crash state fails again")
        runs = verdicts[Verdict.VIOLATED] + verdicts[Verdict.HOLDS]
        return Share(failed=verdicts[Verdict.VIOLATED], runs=runs) if runs else None

    def _recordings(self, planned: PlannedPart, session: Session, cause: str, finding: Finding) -> Share:
        """Records and explores the workload anew, on the disk on which the failure was found."""
        origin = provenance(session.store, finding)
        settings = settings_for_recorders(session.settings, [origin.recorder])
        with plans_of_part(planned, session) as (plans, _), Spare(settings, self.until) as machine:
            plan = plans.get(probe_of(finding), plans[Probe.WALK])
            again = replace(plan, workload=workload_in(planned, finding), how=replace(plan.how, held=origin.held))
            results = [
                machine.twice(lambda: run_plan(again, machine, session.store, self.progress, fresh=True))
                for _ in range(self.confirm)
            ]
        failed = sum(any(cause_of_finding(planned, found) == cause for found in result.findings) for result in results)
        return Share(failed=failed, runs=self.confirm)
