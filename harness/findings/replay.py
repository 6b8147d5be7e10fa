"""Replay a finding: recover its crash state again, or run its workload again if guests were lost while they ran it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from postcrash._core import Interval, Recording, intervals
from postcrash.harness.errors import GuestLostError, UsageError
from postcrash.harness.examination.casualties import doing
from postcrash.harness.examination.crash_in_recovery import SameRecovery, judge_again, source_of
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import Judge
from postcrash.harness.examination.recorded import recorded_how
from postcrash.harness.examination.recording import record, settings_for_recorders
from postcrash.harness.expectations.reference import judges_of
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.harness.scratch import scratch
from postcrash.harness.session import Session
from postcrash.model import History, Observation, ObservationError, Verdict, parse_workload
from postcrash.reports.store.records import Choices, Finding
from postcrash.targets import RecoveryKind


def replay(session: Session, finding: Finding, times: int) -> list[tuple[Verdict, str]]:
    """What the finding's judge says each time, with its message. UNDECIDED if it cannot tell. Raises HarnessError."""
    with source_of(session.store, finding) as (source, under), Machine(_settings(session, finding)) as machine:
        if finding.is_of_run:
            return [_run_once(session, machine, source, finding) for _ in range(times)]
        with _judge(session, machine, under, finding) as judge:
            return [_once(machine, source, finding, judge) for _ in range(times)]


@dataclass(frozen=True, slots=True)
class Flip:
    """A lost piece of a finding's crash state, and the verdict on the state that keeps it and is the same otherwise."""

    sector: int
    sectors: int
    verdict: Verdict


FLIPS_MAX = 100
"""The most pieces that are tried. A state that lost more is seldom a minimal one."""
VERSIONS_MAX = 1000
"""The most versions of a component that are searched for one that keeps a piece."""


def flips(session: Session, finding: Finding) -> list[Flip]:
    """What the judge says when each lost piece is kept, one at a time. Raises HarnessError.

    A piece is left out if it cannot be kept without others, as on drives that do not reorder. There is nothing to try
    for crashes within recovery, and where guests were lost while they ran the workload.
    """
    with source_of(session.store, finding) as (source, under), Machine(session.settings) as machine:
        if under is not None or finding.is_of_run:
            return []
        interval = intervals(Recording(source.recording), source.base, finding.model)[finding.interval]
        with _judge(session, machine, under, finding) as judge:
            kept = islice(_kept(interval, finding.choices), FLIPS_MAX)
            return [
                Flip(*interval.pieces[piece][1:], _once(machine, source, replace(finding, choices=choices), judge)[0])
                for piece, choices in kept
            ]


def with_flips(finding: Finding, tried: Iterable[Flip]) -> Finding:
    """The finding with the lost pieces that matter."""
    return replace(
        finding, needed=tuple((each.sector, each.sectors) for each in tried if each.verdict is Verdict.HOLDS)
    )


def _kept(interval: Interval, choices: Choices) -> Iterator[tuple[int, Choices]]:
    """For each lost piece, the state that loses the same pieces but this one, if there is such a state."""
    lost = frozenset(interval.lost(choices))
    for component, version in choices:
        rest = tuple(choice for choice in choices if choice[0] != component)
        for other in range(min(len(interval.components[component][2]), VERSIONS_MAX)):
            state = (*rest, (component, other)) if other else rest
            flipped = lost - frozenset(interval.lost(state))
            if other != version and len(flipped) == 1 and len(interval.lost(state)) == len(lost) - 1:
                yield next(iter(flipped)), state


def _settings(session: Session, finding: Finding) -> MachineSettings:
    if not finding.is_of_run:
        return session.settings
    return settings_for_recorders(session.settings, [recorded_how(session.store, finding)["recorder"]])


def _run_once(session: Session, machine: Machine, source: Source, finding: Finding) -> tuple[Verdict, str]:
    """VIOLATED if two guests in a row are lost while they run the finding's workload, as before."""
    how, workload = recorded_how(session.store, finding), parse_workload(finding.workload_text, finding.workload_name)
    mount = session.target_of(finding).mount_wire()
    with scratch() as folder:
        out = folder / "run.pcr"
        try:
            record(machine, source.base, mount, workload, out, {}, held=how["held"], recorder=how["recorder"])
        except GuestLostError as error:
            return Verdict.VIOLATED, f"{doing(workload, error.lost)}: {error}"
    if machine.take_lost():
        return Verdict.HOLDS, "one guest was lost, and a fresh one ran the workload to its end"
    return Verdict.HOLDS, "the workload ran to its end"


@contextmanager
def _judge(session: Session, machine: Machine, under: Source | None, finding: Finding) -> Iterator[Judge | None]:
    """The judge that objected. None if the guest was lost."""
    if under is not None and finding.checker == SameRecovery.name and finding.casualty is None:
        yield judge_again(machine, under, finding)
        return
    how = Exploration(finding.model, recorder=recorded_how(session.store, finding)["recorder"])
    with judges_of(session, finding, session.target_of(finding), how) as judges:
        yield next(iter(judges), None) if finding.casualty is None else None


def _once(machine: Machine, source: Source, finding: Finding, judge: Judge | None) -> tuple[Verdict, str]:
    executed = machine.execute(source, finding.interval, finding.choices, RecoveryKind.from_wire(finding.recover))
    if executed.casualty is not None:
        return Verdict.UNDECIDED if judge else Verdict.VIOLATED, executed.casualty.what
    if judge is None:
        return Verdict.HOLDS, "the state is recovered"
    workload = parse_workload(finding.workload_text, finding.workload_name)
    try:
        observation = Observation.from_wire(executed.observation)
    except ObservationError as error:
        raise UsageError(f"the agent's report is broken: {error}") from error
    opinion = judge.opinion(History(workload, finding.started, finding.returned), observation)
    return opinion.verdict, opinion.message or f"{judge.name} holds"
