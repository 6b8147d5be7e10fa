"""One application on one target: what is run, on which disks, and what all runs come to together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from postcrash.apps import Application
from postcrash.harness.auditing.coverage_estimate import unseen_share
from postcrash.harness.auditing.folder_plan import folder_plan
from postcrash.harness.auditing.judge import ABOUT, ApplicationJudge, about
from postcrash.harness.auditing.recording_equivalence import shape_of
from postcrash.harness.auditing.second_crash import SecondCrashes, second_crashes
from postcrash.harness.auditing.synchrony import EXTERNAL_DURABILITY, EXTERNAL_ORDER, judges_of_synchrony, traced
from postcrash.harness.examination.campaign import Progress, run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.model import Verdict, Workload, worst
from postcrash.model.operation import RUN, RUN_UNFLUSHED, WATCH, Operation
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.store.table_rows import AuditCell, SynchronyAnswer, SynchronyCell
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class Audit:
    """What an application comes to on a target: an examination for each disk on which it ran.

    workload    what was run of it
    folders     the number of different folders, with what had been acknowledged, that were judged now (0 if all was
                known)
    ways        the number of different shapes (`shape_of`) of the recordings, one recording for each of `results`; 0:
                nobody looked
    unseen      the share of runs of other shapes is at most this (`unseen_share`)
    second      what came of crashes within its own recovery; None: it was not crashed there
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
        """The results, and those of second crashes."""
        return (*self.results, *(self.second.results if self.second else ()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, as it is printed."""
        return tuple(finding for result in self.everything for finding in result.findings)

    @property
    def recordings(self) -> int:
        """The number of recordings that were made. There is none if the program could not be run."""
        return sum(bool(result.recording) for result in self.results)

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst([result.verdict for result in self.results] + ([self.second.verdict] if self.second else []))

    @property
    def cell(self) -> AuditCell:
        """As a table has it."""
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
            said="" if self.verdict is Verdict.HOLDS else (findings[0].message if findings else "; ".join(reasons)),
            finding=findings[0].id if findings else "",
        )


def synchrony_cell(done: Audit) -> SynchronyCell:
    """A `synchrony_audit` as a table has it."""
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
    session: Session,
    application: Application,
    target: Target,
    how: Exploration,
    guests: int | None,
    progress: Progress,
    *,
    one_disk: bool = False,
    recordings: int = 1,
    twice: bool = False,
) -> Audit:
    """Run the application on `target`, on each disk, and have every crash state judged.

    A program need not run in the same way twice. It is recorded so many times on each disk, unless a promise is broken
    before. A disk that holds completions back has another order of them each time. If it is crashed `twice`, its
    recovery of each folder that its check accepted is crashed, too.

    Nobody knows all the files that a program and its check read, so results of earlier audits are not taken.
    Raises HarnessError if the application cannot be run.
    """
    disks = [replace(how, held=held) for held in how.disks(one=one_disk)]
    seconds, recorded = how.budget.seconds, _Recordings()
    with ApplicationJudge(application, seconds and seconds * recordings, keeps=twice) as judge:
        for number in range(1, recordings + 1):
            hows = [_reordered(disk, number) for disk in disks]
            plans = [replace(plan_of(session, application, target, each, judge), recording=number) for each in hows]
            results = run_campaign(plans, session.crew(guests), session.store, progress, fresh=True)
            recorded.add(hows, results, session.store)
            if worst(result.verdict for result in results) is Verdict.VIOLATED:
                break
        return Audit(
            *(application, workload_of(application), target, session.kernel.label),
            *(tuple(recorded.hows), tuple(recorded.results)),
            folders=judge.folders,
            ways=len(set(recorded.shapes)),
            unseen=unseen_share(recorded.shapes),
            second=second_crashes(
                session, application, target=target, disks=disks, guests=guests, progress=progress, states=judge.kept
            )
            if twice
            else None,
        )


@dataclass(slots=True)
class _Recordings:
    """Recordings of one application on one target, and what they came to."""

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


def synchrony_audit(
    session: Session,
    application: Application,
    target: Target,
    how: Exploration,
    guests: int | None,
    progress: Progress,
    *,
    one_disk: bool,
) -> Audit:
    """As `audit`, but judged by whether what the application says is true: its check is not asked."""
    hows = tuple(replace(how, held=held) for held in how.disks(one=one_disk))
    run = Operation(WATCH, value=traced(application), seconds=application.seconds)
    workload = _workload(application, run)
    inodes = application.inodes
    plans = [folder_plan(session, workload, target, each, judges_of_synchrony(), {}, inodes=inodes) for each in hows]
    results = run_campaign(plans, session.crew(guests), session.store, progress, fresh=True)
    return Audit(application, workload, target, session.kernel.label, hows, tuple(results))


def plan_of(
    session: Session, application: Application, target: Target, how: Exploration, judge: ApplicationJudge
) -> Plan:
    """What is run of the application, and judged by `judge` and the judges of `BESIDE`. Raises HarnessError."""
    workload, told = workload_of(application), {ABOUT: about(application)}
    return folder_plan(session, workload, target, how, (judge,), told, inodes=application.inodes)
