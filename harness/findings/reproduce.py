"""Makes the shell script of a finding, in several forms with different power cuts."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from postcrash._core import DeviceModel, Interval, Recording, intervals
from postcrash.harness.examination.crash_in_recovery import source_of, state_below
from postcrash.harness.expectations.objections import as_objected, objections
from postcrash.harness.findings.outcome_commands import outcome_symptom
from postcrash.harness.findings.symptom import objects, symptom
from postcrash.model import History, Observation, parse_workload
from postcrash.reports.explanation.epochs import crash_event
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.script.shell_script import Cut, FlakeyCut, LogCut, Symptom, script
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A script, the exit codes of its runs (None: it did not end), and the output of the last run."""

    text: str
    cut: Cut
    codes: tuple[int | None, ...] = ()
    printed: str = ""

    @property
    def shown(self) -> int:
        """The number of runs that showed the violation."""
        return sum(code == 1 for code in self.codes)


def reproducers_of(finding: Finding, target: Target, store: Store) -> tuple[Reproducer, ...]:
    """Returns scripts that may show a finding of the store, simplest first. Raises NoCommandError if there are none."""
    if finding.is_of_run:
        raise NoCommandError("guests were lost while they ran the workload")
    require_one_crash(finding)
    with source_of(store, finding) as (source, _):
        recording = Recording(source.recording)
        interval = intervals(recording, source.base, finding.model)[finding.interval]
        return reproducers(finding, target, recording, interval)


def reproducers(finding: Finding, target: Target, recording: Recording, interval: Interval) -> tuple[Reproducer, ...]:
    """Returns the scripts that may show the finding, simplest first. Raises NoCommandError if there are none."""
    require_shell(finding)
    finding = finding_to_show(finding, target)
    (history, observation), sign = _history_and_observation(finding), symptom_of(finding)
    title = f"{finding.target}, {finding.checker}: {finding.message}"
    cuts: dict[Cut, None] = dict.fromkeys(
        [*_flakey(finding, history, observation), *_logged(finding, recording, interval)]
    )
    return tuple(
        Reproducer(script(title, target, history.workload, list(history.trees), sign, cut), cut) for cut in cuts
    )


def finding_to_show(finding: Finding, target: Target) -> Finding:
    """Returns the finding that a script shows for this one: itself, unless it was made by a comparison.

    Then it is the finding of a judge that compares nothing and objects to the same state, if a script can show that.
    """
    for objection in objections(finding, target):
        objected = as_objected(finding, objection)
        with suppress(NoCommandError):
            symptom_of(objected)
            return objected
    return finding


def finding_to_report(finding: Finding, smallest: Finding, target: Target) -> Finding:
    """Returns the finding of the smallest workload, or `finding` if only its state breaks a rule.

    Minimizing a comparison's finding checks only whether the reference shows the state.
    """
    return finding if objections(finding, target) and not objections(smallest, target) else smallest


def require_one_crash(finding: Finding) -> None:
    """Raise NoCommandError if the power fails more than once: no script can make that."""
    if state_below(finding) is not None:
        raise NoCommandError("the power fails a second time, within recovery")


def require_shell(finding: Finding) -> None:
    """Raise NoCommandError if the shell cannot make the finding: flushes do not persist, or a program ran."""
    if not DeviceModel(finding.model).honours_flush:
        raise NoCommandError(f"no script can show a disk of the model {finding.model}, whose flushes do not persist")
    if parse_workload(finding.workload_text, finding.workload_name).runs_programs:
        raise NoCommandError("what its program does to files is not known")


def cut_for_fstests(finding: Finding, recording: Recording, interval: Interval) -> tuple[Cut, bool]:
    """Returns a power cut that a test of fstests can make, and whether it makes a state like the finding's.

    The finding's state may have lost nothing that was in flight, or all of it. Anything between cannot be made; then
    the cut is the finding's own without the writes that it lost.
    """
    history, observation = _history_and_observation(finding)
    is_inside = finding.started > finding.returned
    crash = crash_event(interval, finding.started, finding.returned)
    flushes = _flushes(recording, crash)
    if not finding.lost:
        logged = LogCut(finding.started, flushes, (), is_inside)
        return next(_flakey(finding, history, observation), logged), not _completes_a_write(recording, crash)
    is_all = len(finding.lost) == len(interval.pieces) and not finding.torn
    is_all = is_all and not _completes_a_write(recording, crash)
    return LogCut(finding.started, flushes - 1 if is_all else flushes, (), is_inside), is_all


def _completes_a_write(recording: Recording, event: int) -> bool:
    """Whether the event completes a write without a flush or FUA. No log of a script is cut there."""
    events = recording.events()
    match events[event] if event < len(events) else None:
        case ("complete", ident):
            plain = (each for each in events[:event] if each[0] in ("write", "zero") and each[1] == ident)
            return any(each[0] == "zero" or not any(each[4:]) for each in plain)
    return False


def symptom_of(finding: Finding) -> Symptom:
    """Returns the symptom that a script checks. Raises NoCommandError."""
    history, observation = _history_and_observation(finding)
    if finding.reference_name:
        return outcome_symptom(finding, history, observation)
    return symptom(finding.checker, history, observation, repaired=finding.is_repaired)


def _history_and_observation(finding: Finding) -> tuple[History, Observation | None]:
    workload = parse_workload(finding.workload_text, finding.workload_name)
    history = History(workload, finding.started, finding.returned)
    return history, None if finding.observation is None else Observation.from_wire(finding.observation)


def _flakey(finding: Finding, history: History, observation: Observation | None) -> Iterator[FlakeyCut]:
    """Yields power cuts between operations for which the judge objects to the finding's observation."""
    for count in dict.fromkeys([finding.started, finding.returned]):
        is_after_setup = count >= len(history.workload.setup)
        if is_after_setup and observation and _objects(finding, History(history.workload, count, count), observation):
            yield FlakeyCut(count)


def _objects(finding: Finding, history: History, observation: Observation) -> bool:
    """Whether the judge objects at this instant. What a reference shows is known at the finding's own instant only."""
    if finding.reference_name:
        return (history.started, history.returned) == (finding.started, finding.returned)
    return objects(finding.checker, history, observation)


def _logged(finding: Finding, recording: Recording, interval: Interval) -> Iterator[LogCut]:
    """Yields power cuts near the finding's own, since the number of flushes depends on the device."""
    own = _flushes(recording, crash_event(interval, finding.started, finding.returned))
    is_inside = finding.started > finding.returned
    near = [own, own - 1, own + 1] if is_inside else [own]
    near = [flushes for flushes in near if flushes >= -1]
    for flushes in near:
        yield LogCut(finding.started, flushes, (), is_inside)
    lost = finding.explanation.lost if finding.explanation and not finding.explanation.lost_omitted else ()
    for flushes in near if lost else ():
        if flushes >= 0:
            yield LogCut(finding.started, flushes, lost, is_inside)


def _flushes(recording: Recording, before: int) -> int:
    """Counts the flushes completed before the event `before`, since an operation last started or returned."""
    completed, pending = 0, set()
    for event in recording.events()[:before]:
        match event:
            case ("flush", ident, *_) | ("write", ident, _, _, _, True):
                pending.add(ident)
            case ("complete", ident) if ident in pending:
                completed += 1
            case ("started", _) | ("returned", _, _):
                completed = 0
    return completed
