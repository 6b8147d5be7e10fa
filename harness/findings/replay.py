"""Replays a finding: recovers its crash state, or runs its workload if guests were lost while they ran it."""

from collections.abc import Iterator
from contextlib import contextmanager

from postcrash.harness.errors import GuestLostError, UsageError
from postcrash.harness.examination.crash_in_recovery import SameRecovery, judge_again, source_of
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.lost_guests import activity_of
from postcrash.harness.examination.recording import record, settings_for_recorders
from postcrash.harness.examination.recording_metadata import provenance
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.reference import judges_of
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import History, Observation, ObservationError, Verdict, parse_workload
from postcrash.model.judge import Judge
from postcrash.store.records import Finding


def replay(session: Session, finding: Finding, times: int, until: float | None = None) -> list[tuple[Verdict, str]]:
    """Returns the verdict and the message of the finding's judge for each time.

    Raises HarnessError, also if the monotonic clock reaches `until`.
    """
    with source_of(session.store, finding) as (source, under), Spare(_settings(session, finding), until) as spare:
        return spare.twice(lambda: _answers(session, spare(), source, under, finding, times=times))


def _answers(
    session: Session, machine: Machine, source: Source, under: Source | None, finding: Finding, *, times: int
) -> list[tuple[Verdict, str]]:
    if finding.is_of_run:
        return [_run_once(session, machine, source, finding) for _ in range(times)]
    with judge_of(session, machine, under, finding) as judge:
        return [recovered(machine, source, finding, judge) for _ in range(times)]


def _settings(session: Session, finding: Finding) -> MachineSettings:
    if not finding.is_of_run:
        return session.settings
    return settings_for_recorders(session.settings, [provenance(session.store, finding).recorder])


def _run_once(session: Session, machine: Machine, source: Source, finding: Finding) -> tuple[Verdict, str]:
    """VIOLATED if two guests in a row are lost while they run the finding's workload, as before."""
    how, workload = provenance(session.store, finding), parse_workload(finding.workload_text, finding.workload_name)
    mount = session.target_of(finding).mount
    with scratch() as folder:
        out = folder / "run.pcr"
        try:
            record(machine, source.base, mount, workload, out, {}, held=how.held, recorder=how.recorder)
        except GuestLostError as error:
            return Verdict.VIOLATED, f"{activity_of(workload, error.lost)}: {error}"
    if machine.take_lost():
        return Verdict.HOLDS, "one guest was lost, and a fresh one ran the workload to its end"
    return Verdict.HOLDS, "the workload ran to its end"


@contextmanager
def judge_of(session: Session, machine: Machine, under: Source | None, finding: Finding) -> Iterator[Judge | None]:
    """Yields the judge that objected, or None if the guest was lost."""
    if under is not None and finding.checker == SameRecovery.name and finding.casualty is None:
        yield judge_again(machine, under, finding)
        return
    how = Exploration(finding.model, recorder=provenance(session.store, finding).recorder)
    with judges_of(session, finding, session.target_of(finding), how) as judges:
        yield next(iter(judges), None) if finding.casualty is None else None


def recovered(machine: Machine, source: Source, finding: Finding, judge: Judge | None) -> tuple[Verdict, str]:
    """Recovers the finding's crash state once more and judges it. Raises HarnessError."""
    executed = machine.execute(source, finding.interval, finding.choices, finding.recovery)
    if executed.casualty is not None:
        return Verdict.UNDECIDED if judge else Verdict.VIOLATED, executed.casualty.what
    if judge is None:
        return Verdict.HOLDS, "the state is recovered"
    workload = parse_workload(finding.workload_text, finding.workload_name)
    try:
        observation = Observation.from_wire(executed.observation)
    except ObservationError as error:
        raise UsageError(f"the agent's report is broken: {error}") from error
    opinion = judge.check(History(workload, finding.started, finding.returned), observation)
    return opinion.verdict, opinion.message or f"{judge.name} holds"
