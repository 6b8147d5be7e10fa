"""The shell script of a finding. It is tried in several forms to see which of them shows the finding first."""

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
    """A script and how its runs ended: the exit code of each (None: it did not end), and what the last one printed."""

    text: str
    cut: Cut
    codes: tuple[int | None, ...] = ()
    printed: str = ""

    @property
    def shown(self) -> int:
        """In how many runs the violation showed."""
        return sum(code == 1 for code in self.codes)


def reproducers_of(finding: Finding, target: Target, store: Store) -> tuple[Reproducer, ...]:
    """The scripts that may show a finding of the store, simplest first. Raises NoCommandError if there can be none."""
    if finding.is_of_run:
        raise NoCommandError("guests were lost while they ran the workload")
    require_one_crash(finding)
    with source_of(store, finding) as (source, _):
        recording = Recording(source.recording)
        interval = intervals(recording, source.base, finding.model)[finding.interval]
        return reproducers(finding, target, recording, interval)


def reproducers(finding: Finding, target: Target, recording: Recording, interval: Interval) -> tuple[Reproducer, ...]:
    """The scripts that may show the finding, simplest first. Raises NoCommandError if there can be none."""
    require_shell(finding)
    finding = finding_to_show(finding, target)
    (history, observation), found = _seen(finding), symptom_of(finding)
    title = f"{finding.target}, {finding.checker}: {finding.message}"
    cuts: dict[Cut, None] = dict.fromkeys(
        [*_flakey(finding, history, observation), *_logged(finding, recording, interval)]
    )
    return tuple(
        Reproducer(script(title, target, history.workload, list(history.trees), found, cut), cut) for cut in cuts
    )


def finding_to_show(finding: Finding, target: Target) -> Finding:
    """The finding that a script shows for this one. It is this one, unless it was made by a comparison.

    Then it is the finding of a judge that compares nothing and objects to the same state, if a script can look for what
    that judge says.
    """
    for objection in objections(finding, target):
        objected = as_objected(finding, objection)
        with suppress(NoCommandError):
            symptom_of(objected)
            return objected
    return finding


def finding_to_report(finding: Finding, smallest: Finding, target: Target) -> Finding:
    """The finding of the smallest workload, unless only the state of `finding` breaks a rule: this tells more.

    Minimizing a comparison's finding asks only whether the reference shows the state.
    """
    return finding if objections(finding, target) and not objections(smallest, target) else smallest


def require_one_crash(finding: Finding) -> None:
    """Raise NoCommandError if the power fails more than once: no script can make that."""
    if state_below(finding) is not None:
        raise NoCommandError("the power fails a second time, within recovery")


def require_shell(finding: Finding) -> None:
    """Raise NoCommandError if the shell cannot make the finding: a drive ignores flushes, or a program ran."""
    if not DeviceModel(finding.model).honours_flush:
        raise NoCommandError(f"no script can show a disk of the model {finding.model}, where flushes do nothing")
    if parse_workload(finding.workload_text, finding.workload_name).runs_programs:
        raise NoCommandError("what its program does to files is not known")


def cut_for_fstests(finding: Finding, recording: Recording, interval: Interval) -> tuple[Cut, bool]:
    """A power cut that a test of fstests can make, and whether it makes a state like the finding's.

    The finding's state may have lost nothing that was in flight, or all of it. Anything between cannot be made; then
    the cut is the finding's own without the writes that it lost.
    """
    history, observation = _seen(finding)
    is_inside = finding.started > finding.returned
    done = _flushes(recording, crash_event(interval, finding.started, finding.returned))
    if not finding.lost:
        logged = LogCut(finding.started, done, (), is_inside)
        return next(_flakey(finding, history, observation), logged), True
    is_all = len(finding.lost) == len(interval.pieces) and not finding.torn
    return LogCut(finding.started, done - 1 if is_all else done, (), is_inside), is_all


def symptom_of(finding: Finding) -> Symptom:
    """What a script looks for. Raises NoCommandError."""
    history, observation = _seen(finding)
    if finding.reference_name:
        return outcome_symptom(finding, history, observation)
    return symptom(finding.checker, history, observation, repaired=finding.is_repaired)


def _seen(finding: Finding) -> tuple[History, Observation | None]:
    workload = parse_workload(finding.workload_text, finding.workload_name)
    history = History(workload, finding.started, finding.returned)
    return history, None if finding.observation is None else Observation.from_wire(finding.observation)


def _flakey(finding: Finding, history: History, observation: Observation | None) -> Iterator[FlakeyCut]:
    """Power cuts between operations for which the judge objects to the finding's observation."""
    for count in dict.fromkeys([finding.started, finding.returned]):
        is_recorded = count >= len(history.workload.setup)
        if is_recorded and observation and _objects(finding, History(history.workload, count, count), observation):
            yield FlakeyCut(count)


def _objects(finding: Finding, history: History, observation: Observation) -> bool:
    """Whether the judge objects at this instant. What a reference shows is known at the finding's own instant only."""
    if finding.reference_name:
        return (history.started, history.returned) == (finding.started, finding.returned)
    return objects(finding.checker, history, observation)


def _logged(finding: Finding, recording: Recording, interval: Interval) -> Iterator[LogCut]:
    """Power cuts near the finding's own. There are several, because when a kernel flushes depends on the device."""
    done = _flushes(recording, crash_event(interval, finding.started, finding.returned))
    is_inside = finding.started > finding.returned
    near = [done, done - 1, done + 1] if is_inside else [done]
    near = [flushes for flushes in near if flushes >= -1]
    for flushes in near:
        yield LogCut(finding.started, flushes, (), is_inside)
    lost = finding.explanation.lost if finding.explanation and not finding.explanation.lost_omitted else ()
    for flushes in near if lost else ():
        if flushes >= 0:
            yield LogCut(finding.started, flushes, lost, is_inside)


def _flushes(recording: Recording, before: int) -> int:
    """The number of flushes done before the event `before`, since an operation last started or returned."""
    done, waiting = 0, set()
    for event in recording.events()[:before]:
        match event:
            case ("flush", ident) | ("write", ident, _, _, _, True):
                waiting.add(ident)
            case ("complete", ident) if ident in waiting:
                done += 1
            case ("started", _) | ("returned", _, _):
                done = 0
    return done
