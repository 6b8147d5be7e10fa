"""Audits of an application on a target: what is run, on which disks, and the verdict over all runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from postcrash.apps import Application
from postcrash.harness.auditing.coverage_estimate import unseen_share
from postcrash.harness.auditing.folder_plan import AuditSetup, folder_plan
from postcrash.harness.auditing.judge import ABOUT, ApplicationJudge, about
from postcrash.harness.auditing.recording_equivalence import shape_of
from postcrash.harness.auditing.second_crash import SecondCrashes, second_crashes
from postcrash.harness.auditing.synchrony import EXTERNAL_DURABILITY, EXTERNAL_ORDER, judges_of_synchrony, traced
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.model import Verdict, Workload, worst
from postcrash.model.operation import RUN, RUN_UNFLUSHED, WATCH, Operation
from postcrash.store.audit_cells import AuditCell, SynchronyAnswer, SynchronyCell
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit: an examination for each disk and recording.

    workload    the workload that ran it
    folders     number of different folders, with acknowledgements, that the check judged
    ways        number of different shapes (`shape_of`) of the recordings; 0 if they were not compared
    unseen      upper bound of the share of runs of other shapes (`unseen_share`)
    second      crashes within the application's own recovery; None if there were none
    """

    application: Application
    workload: Workload
    target: Target
    kernel: str
    how: tuple[Exploration, ...]
    results: tuple[Examination, ...]
    folders: int = 0
    ways: int = 0
    unseen: float = 1.0
    second: SecondCrashes | None = None

    @property
    def everything(self) -> tuple[Examination, ...]:
        """The results, with those of second crashes."""
        return (*self.results, *(self.second.results if self.second else ()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order in which they are printed."""
        return tuple(finding for result in self.everything for finding in result.findings)

    @property
    def recordings(self) -> int:
        """The number of recordings. A program that could not be run has none."""
        return sum(bool(result.recording) for result in self.results)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all results."""
        return worst([result.verdict for result in self.results] + ([self.second.verdict] if self.second else []))

    @property
    def cell(self) -> AuditCell:
        """The cell of the table of audits."""
        worst_first = sorted(self.everything, key=lambda result: -result.verdict)
        findings = [finding for result in worst_first for finding in result.findings]
        reasons = [
            ruling.reason
            for result in worst_first
            for ruling in result.rulings.values()
            if ruling.verdict is self.verdict
        ]
        reasons += [self.second.undecided] if self.second and self.second.undecided else []
        return AuditCell(
            application=self.application.name,
            target=self.target.name,
            verdict=self.verdict,
            states=sum(result.covered for result in self.everything),
            total=sum(result.states for result in self.everything),
            recoveries=sum(result.recoveries for result in self.everything),
            folders=self.folders,
            recordings=self.recordings,
            ways=self.ways,
            unseen=self.unseen,
            message="" if self.verdict is Verdict.HOLDS else (findings[0].message if findings else "; ".join(reasons)),
            finding=findings[0].id if findings else "",
        )


def synchrony_cell(done: Audit) -> SynchronyCell:
    """The cell of a `synchrony_audit` in its table."""
    return SynchronyCell(
        program=done.application.name,
        target=done.target.name,
        answers={judge: _answer(done, judge) for judge in (EXTERNAL_DURABILITY, EXTERNAL_ORDER)},
        states=sum(result.covered for result in done.results),
        total=sum(result.states for result in done.results),
        recoveries=sum(result.recoveries for result in done.results),
    )


def _answer(done: Audit, judge: str) -> SynchronyAnswer:
    rulings = [result.rulings[judge] for result in done.results if judge in result.rulings]
    if len(rulings) < len(done.results):
        return SynchronyAnswer(Verdict.UNDECIDED, "it could not be run", "")
    verdict = worst(ruling.verdict for ruling in rulings)
    why = next((ruling.reason for ruling in rulings if ruling.verdict is verdict), "")
    findings = (finding.id for result in done.results for finding in result.findings if finding.checker == judge)
    return SynchronyAnswer(verdict, why, next(findings, ""))


def workload_of(application: Application) -> Workload:
    """The application's set-up and run, with what the kernel does later by itself."""
    run = Operation(RUN, value=application.run, seconds=application.seconds)
    if application.left_out:
        run = replace(run, word=RUN_UNFLUSHED, name=",".join(map(str, application.left_out)))
    return _workload(application, run)


def _workload(application: Application, run: Operation) -> Workload:
    set_up = Operation(RUN, value=application.set_up, seconds=application.seconds)
    return Workload(application.name, (set_up,) if application.set_up else (), (run,)).with_tail()


def audit(
    setup: AuditSetup,
    application: Application,
    target: Target,
    *,
    one_disk: bool = False,
    recordings: int = 1,
    twice: bool = False,
) -> Audit:
    """Run the application on `target`, on each disk, and judge every crash state.

    A program need not run in the same way twice. It is recorded `recordings` times on each disk, unless a promise is
    broken before. A disk that holds completions back has another order of them each time. With `twice`, its recovery
    of each folder that its check accepted is crashed, too. Raises HarnessError if the application cannot be run.
    """
    session = setup.session
    disks = [replace(setup.how, held=held) for held in setup.how.disks(one=one_disk)]
    seconds, made = setup.how.budget.seconds, _Recordings()
    with ApplicationJudge(application, seconds and seconds * recordings, keeps=twice) as judge:
        for number in range(1, recordings + 1):
            hows = [_reordered(disk, number) for disk in disks]
            plans = [replace(plan_of(session, application, target, each, judge), recording=number) for each in hows]
            results = setup.examine(plans)
            made.add(hows, results, session.store)
            if worst(result.verdict for result in results) is Verdict.VIOLATED:
                break
        return Audit(
            application,
            workload_of(application),
            target,
            session.kernel.label,
            how=tuple(made.hows),
            results=tuple(made.results),
            folders=judge.folders,
            ways=len(set(made.shapes)),
            unseen=unseen_share(made.shapes),
            second=second_crashes(setup, application, target, disks, judge.kept) if twice else None,
        )


@dataclass(slots=True)
class _Recordings:
    """Recordings of one application on one target, and their results."""

    hows: list[Exploration] = field(default_factory=list)
    results: list[Examination] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)
    """Of the recordings that were made, in their order."""

    def add(self, hows: Sequence[Exploration], results: Sequence[Examination], store: Store) -> None:
        """Add a recording of each disk."""
        self.hows += hows
        self.results += results
        made = (result.recording for result in results if result.recording)
        self.shapes += [shape_of(store.recording_path(recording)) for recording in made]


def _reordered(disk: Exploration, number: int) -> Exploration:
    """The disk for the recording of this number. Each takes another order from a disk that holds completions back."""
    return disk if disk.held is None else replace(disk, held=disk.held + number - 1)


def synchrony_audit(setup: AuditSetup, application: Application, target: Target, *, one_disk: bool) -> Audit:
    """Audit external synchrony instead of the application's promises: its check is not run."""
    session = setup.session
    hows = tuple(replace(setup.how, held=held) for held in setup.how.disks(one=one_disk))
    workload = _workload(application, Operation(WATCH, value=traced(application), seconds=application.seconds))
    inodes = application.inodes
    plans = [folder_plan(session, workload, target, each, judges_of_synchrony(), {}, inodes=inodes) for each in hows]
    results = setup.examine(plans)
    return Audit(application, workload, target, session.kernel.label, how=hows, results=tuple(results))


def plan_of(
    session: Session, application: Application, target: Target, how: Exploration, judge: ApplicationJudge
) -> Plan:
    """The plan to run the application, with `judge` and the judges of `BESIDE`. Raises HarnessError."""
    metadata = {ABOUT: about(application)}
    return folder_plan(session, workload_of(application), target, how, (judge,), metadata, inodes=application.inodes)
