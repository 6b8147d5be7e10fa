"""A corpus: run every workload of a folder on the targets that it is about, on several kernels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from postcrash.harness.examination.campaign import Progress, run_campaign
from postcrash.harness.examination.coverage import common_reason
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import recoveries_for
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.known_objections import KnownObjections, page_of
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.tables.matrix import kernels_for
from postcrash.model import Verdict, Workload, worst
from postcrash.store.records import Finding
from postcrash.store.table_rows import CorpusColumn, CorpusObjection, Result
from postcrash.targets import TARGETS, Target

FILE_SYSTEMS = frozenset(target.fstype for target in TARGETS)


@dataclass(frozen=True, slots=True)
class CorpusQuestion:
    """The workloads, targets and judges of a corpus run.

    kinds  the kinds of recovery, as `kind_of` calls them
    disks  each workload is run on each of these disks; they say when writes complete, as `Exploration.held` does
    """

    workloads: Sequence[Workload]
    targets: Sequence[Target]
    expected: Expectation
    kinds: frozenset[str]
    how: Exploration
    known: Sequence[KnownObjections] = ()
    disks: Sequence[int | None] = (None,)

    @property
    def pairs(self) -> Iterator[tuple[Workload, Target]]:
        """Each workload with each target that it is about. The pairs of one target come one after another."""
        return ((workload, target) for target in self.targets for workload in self.workloads if suits(workload, target))


def suits(workload: Workload, target: Target) -> bool:
    """Whether a workload is about a target. A workload called `xfs-…` is only about targets with xfs."""
    word = workload.name.partition("-")[0]
    return word not in FILE_SYSTEMS or word == target.fstype


@dataclass(frozen=True, slots=True)
class NamedKernels:
    """The kernels that `name` stands for, with the plan of each target that the kernel runs, without its workload."""

    name: str
    outlines: dict[Kernel, dict[Target, Plan]]


def kernels_of_name(session: Session, name: str | None, question: CorpusQuestion) -> NamedKernels:
    """Find a kernel for each target. Raises HarnessError."""
    outlines: dict[Kernel, dict[Target, Plan]] = {}
    for target, kernel in kernels_for(session, name, question.targets).items():
        if kernel is not None:
            judges, how = question.expected.judges(target, question.how.model), question.how
            recoveries = recoveries_for(judges, target, how.recovery, question.kinds)
            session.require_programs(target, kernel, recoveries)
            outlines.setdefault(kernel, {})[target] = make_plan(session, target, judges, recoveries, how, kernel)
    return NamedKernels(name or session.kernel.label, outlines)


def run_column(
    session: Session,
    named: NamedKernels,
    question: CorpusQuestion,
    guests: int | None,
    progress: Progress,
    *,
    fresh: bool,
    until: float | None = None,
) -> CorpusColumn:
    """The results for one kernel name. If no kernel of this name has a file system, the results say so.

    What is undecided is run again without `checkpoint` at its end: where metadata leaves the log, there can be too many
    crash states. What is not finished when the monotonic clock reaches `until` is undecided.
    """
    found: dict[tuple[str, str], Result] = {}
    for kernel, outlines in named.outlines.items():
        run = partial(
            run_campaign,
            crew=session.crew(guests, kernel),
            store=session.store,
            progress=progress,
            fresh=fresh,
            failures=True,
            until=until,
        )
        pairs = [pair for pair in question.pairs if pair[1] in outlines]
        plans = _plans(outlines, pairs, question.disks, checkpoint=True)
        found |= _by_place(plans, run(plans), question)
        still_open = [pair for pair in pairs if found[_place(*pair)].is_open and not pair[0].ends_in_checkpoint]
        plans = _plans(outlines, still_open, question.disks, checkpoint=False)
        for place, result in _by_place(plans, run(plans), question).items():
            found[place] = with_shorter(found[place], result)
    for workload, target in question.pairs:
        absent = Result(workload.name, target.name, Verdict.UNDECIDED, f"{named.name} cannot run {target.name}")
        found.setdefault((workload.name, target.name), absent)
    labels = dict.fromkeys(kernel.label for kernel in named.outlines)
    return CorpusColumn(named.name, tuple(labels), tuple(found.values()))


def _place(workload: Workload, target: Target) -> tuple[str, str]:
    return workload.name, target.name


def _by_place(
    plans: Sequence[Plan], examined: Sequence[Examination], question: CorpusQuestion
) -> dict[tuple[str, str], Result]:
    found: dict[tuple[str, str], Result] = {}
    for plan, examination in zip(plans, examined, strict=True):
        place, result = _place(plan.workload, plan.target), _result(plan, examination, question)
        found[place] = joined(found[place], result) if place in found else result
    return found


def _plans(
    outlines: Mapping[Target, Plan],
    pairs: Sequence[tuple[Workload, Target]],
    disks: Sequence[int | None],
    *,
    checkpoint: bool,
) -> list[Plan]:
    return [
        replace(
            outlines[target],
            workload=workload.with_tail(checkpoint=checkpoint),
            how=replace(outlines[target].how, held=held),
        )
        for workload, target in pairs
        for held in disks
    ]


def _result(plan: Plan, examined: Examination, question: CorpusQuestion) -> Result:
    verdict, reasons = examined.verdict, [ruling.reason for ruling in examined.rulings.values() if ruling.reason]
    reason = ""
    if verdict is Verdict.UNDECIDED:
        reason = common_reason(reasons[0]) if reasons else "no judge was put to the test"
    return Result(
        plan.workload.name,
        plan.target.name,
        verdict,
        absent=examined.notes[0] if examined.unsupported else "",
        reason=reason,
        objections=tuple(_objection(plan, finding, question) for finding in examined.findings),
        states=examined.covered,
        recoveries=examined.recoveries,
    )


def joined(first: Result, second: Result) -> Result:
    """One result for a workload that was run on two disks. If a judge objects on both, only the first is reported."""
    judges = {objection.judge for objection in first.objections}
    others = (objection for objection in second.objections if objection.judge not in judges)
    verdict = worst((first.verdict, second.verdict))
    return replace(
        first,
        verdict=verdict,
        absent="" if verdict is Verdict.VIOLATED else first.absent or second.absent,
        reason=(first.reason or second.reason) if verdict is Verdict.UNDECIDED else "",
        objections=(*first.objections, *others),
        states=first.states + second.states,
        recoveries=first.recoveries + second.recoveries,
    )


def with_shorter(result: Result, shorter: Result) -> Result:
    """An undecided result, combined with that of the same workload without `checkpoint` at its end."""
    if shorter.verdict is Verdict.VIOLATED:
        return joined(result, shorter)
    return replace(result, shorter_holds=shorter.verdict is Verdict.HOLDS)


def _objection(plan: Plan, finding: Finding, question: CorpusQuestion) -> CorpusObjection:
    target, model, judge = plan.target, plan.how.model, finding.checker
    meaning = question.expected.standing(target, model, judge, Verdict.VIOLATED)
    is_expected = meaning.startswith("broken")
    return CorpusObjection(judge, finding.message, finding.id, meaning, is_expected, page_of(finding, question.known))
