"""Run one part of a gate: all its workloads, judged as its section says."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

from postcrash.harness.auditing.audit import plan_of as plan_of_application
from postcrash.harness.auditing.judge import ApplicationJudge
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.objections import objections
from postcrash.harness.expectations.reference import opened
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.hunting.causes import Cause, cause_of
from postcrash.harness.hunting.default_hunt import DefaultSelection
from postcrash.harness.hunting.groups import kinds_lost
from postcrash.harness.hunting.hunt import HuntProgress
from postcrash.harness.hunting.hunt_result import Group, HuntResult, OpenQuestion
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.harness.hunting.losses import headline
from postcrash.harness.hunting.probes import Plans, Probe, joined_plan, plans_for
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.model import Verdict, Workload, parse_workload, worst
from postcrash.properties import properties_named
from postcrash.reports.explanation.explanation_text import unlike_reference
from postcrash.store.gate_run import INTERRUPTED, NO_TIME, UNTESTED, Failure, Part, VerdictName, cause_id
from postcrash.store.records import Finding
from postcrash.store.store import Store

FINDINGS_MAX = 1000
"""Messages of one judge on one workload that are followed up. A gate must not hide a new one behind a known one."""
_NAMES: dict[Verdict, VerdictName] = {
    Verdict.HOLDS: "holds",
    Verdict.UNDECIDED: "undecided",
    Verdict.VIOLATED: "violated",
}


def run_part(
    planned: PlannedPart, session: Session, guests: int | None, progress: HuntProgress, until: float | None
) -> tuple[Part, bool]:
    """Run the part until the monotonic clock reaches `until`, and say whether the user interrupted it.

    Results of earlier runs are taken from the store, except those of applications. Raises HarnessError.
    """
    if planned.kernel is None:
        return _absent(planned), False
    there, started = session.on(planned.kernel), time.monotonic()
    with plans_of_part(planned, there) as (plans, expected):
        # Nobody knows all the files that an application reads, so that no earlier result stands for it.
        fresh = planned.application is not None
        hunted = run_hunt(planned.workloads, plans, there.crew(guests), there.store, progress, fresh=fresh, until=until)
        part = _part(planned, joined_plan(plans), expected, hunted, there.store, time.monotonic() - started)
    return part, hunted.interrupted


def _absent(planned: PlannedPart) -> Part:
    """The part of a target that no such kernel can run. The baseline can accept that. Then nothing must hold there."""
    return _nothing(planned, f"no kernel called {planned.kernel_name} can run {planned.target.name}")


def not_begun(planned: PlannedPart, why: str = NO_TIME) -> Part:
    """The part if nothing of it was run, and why: usually there was no time."""
    about = {"not_run": planned.workloads.count, "hold": _hold(planned)}
    return _nothing(planned, why).model_copy(update=about)


def short_of_time(planned: PlannedPart, part: Part) -> Part:
    """The part if its budget was cut because of the gate's time. Then it is the gate that had no time."""
    kept = tuple(failure for failure in part.failures if not failure.is_of_time)
    if len(kept) == len(part.failures):
        return part
    counts = {"workloads": max(part.workloads - 1, 0), "not_run": 1}
    return part.model_copy(update={"failures": (*kept, _open(planned, _question(NO_TIME, 1))), **counts})


def _nothing(planned: PlannedPart, why: str) -> Part:
    name, target, kernel, model = planned.key
    return Part(
        name=name,
        kind=planned.kind,
        target=target,
        kernel=kernel,
        model=model,
        expect=planned.expected.name,
        asked=planned.asked,
        verdict="undecided",
        failures=(_open(planned, _question(why, planned.workloads.count or 0)),),
    )


def _hold(planned: PlannedPart) -> dict[str, str | None]:
    """What must hold, as a part's record has it before it is compared with the baseline. Applications are not asked."""
    return dict.fromkeys(planned.hold if planned.application is None else ())


@contextmanager
def plans_of_part(planned: PlannedPart, session: Session) -> Iterator[tuple[Plans, Expectation]]:
    """What each workload is asked, by the probe, and the expectation with its judge. Both end with the context.

    Only the default hunt has several probes.
    """
    target, how = planned.target, planned.how
    with ExitStack() as stack:
        if planned.application is not None:
            judge = stack.enter_context(ApplicationJudge(planned.application, how.budget.seconds))
            plan = plan_of_application(session, planned.application, target, how, judge)
            yield {Probe.WALK: replace(plan, findings_max=FINDINGS_MAX)}, planned.expected
            return
        expected = stack.enter_context(opened(session, planned.expected, target, how))
        judges = {judge.name: judge for judge in expected.judges(target, how.model)}
        for each in properties_named(",".join(planned.hold)) if planned.hold else ():
            judges.setdefault(each.name, each)
        probes = planned.workloads.space.probes if isinstance(planned.workloads, DefaultSelection) else (Probe.WALK,)
        plans = plans_for(session, target, tuple(judges.values()), how, planned.kinds, probes)
        yield {probe: replace(plan, findings_max=FINDINGS_MAX) for probe, plan in plans.items()}, expected


def _part(
    planned: PlannedPart, plan: Plan, expected: Expectation, hunted: HuntResult, store: Store, seconds: float
) -> Part:
    violated = tuple(_violated(planned, expected, group, store) for group in hunted.groups.values())
    asked = chain(_questions(hunted), _lacking(planned, hunted))
    undecided = tuple(_open(planned, question) for question in asked)
    found = [Verdict.VIOLATED] * bool(violated) + [Verdict.UNDECIDED] * bool(undecided)
    counts = hunted.counts
    return Part(
        name=planned.name,
        kind=planned.kind,
        target=planned.target.name,
        kernel=planned.key[2],
        model=plan.how.model,
        expect=planned.expected.name,
        asked=planned.asked,
        verdict=_NAMES[worst([Verdict.HOLDS, *found])],
        workloads=hunted.run,
        not_run=hunted.not_run,
        states=str(counts["covered"]),
        states_total=str(counts["states"]),
        **{name: counts[name] for name in ("instants", "recoveries", "remembered", "outcomes")},
        seconds=round(seconds, 3),
        tested={judge.name: hunted.tested[judge.name] for judge in plan.judges},
        failures=(*violated, *undecided),
        lacking=dict(hunted.lacking),
        hold=_hold(planned),
        notes=tuple(hunted.notes),
    )


def _questions(hunted: HuntResult) -> Iterator[OpenQuestion]:
    """What could not be decided."""
    yield from hunted.open_questions()
    for reason, count in hunted.refused.items():
        yield _question(f"could not be run: {reason}", count)
    if hunted.cut_short:
        yield _question("a workload is violated, and not all of its crash states were looked at", hunted.cut_short)
    if hunted.interrupted:
        yield _question(INTERRUPTED, hunted.not_run)
    elif hunted.not_run:
        yield _question(NO_TIME, hunted.not_run)
    elif not hunted.tested:
        yield _question(UNTESTED, hunted.run)


def _lacking(planned: PlannedPart, hunted: HuntResult) -> Iterator[OpenQuestion]:
    """Operations that the file system lacks, if a corpus asks for them."""
    if planned.kind == "corpus":
        for reason, count in hunted.lacking.items():
            yield _question(f"not on this file system: {reason}", count)


def _question(why: str, workloads: int) -> OpenQuestion:
    """What is open whatever the judge."""
    return OpenQuestion("", why, why, workloads)


def _open(planned: PlannedPart, question: OpenQuestion) -> Failure:
    """What could not be decided, as a failure. Numbers make no other cause of it."""
    return Failure(
        cause=_cause_id(planned, Cause(question.judges, question.pattern, ())),
        verdict="undecided",
        judge=question.judges,
        message=question.words,
        workloads=question.workloads,
    )


def _violated(planned: PlannedPart, expected: Expectation, group: Group, store: Store) -> Failure:
    judge, found = group.cause.checker, store.finding(group.finding)
    cause = _cause_id(planned, group.cause)
    least = found if found.minimal is None else store.finding(found.minimal)
    # A command that minimizes asks for the judge only, and may come to a smaller finding of another cause.
    finding = least if cause_of_finding(planned, least) == cause else found
    standing = expected.standing(planned.target, planned.how.model, judge, Verdict.VIOLATED)
    if judge in planned.hold and not standing.startswith("broken"):
        standing = f"broken: the gate's file says that {judge} must hold"
    return Failure(
        cause=cause,
        verdict="violated",
        judge=judge,
        standing=standing,
        workloads=group.count,
        file="" if planned.folder is None else str(planned.folder / f"{found.workload_name}.ops"),
        found=found.id,
        **finding_fields(planned, finding),
    )


def workload_in(planned: PlannedPart, finding: Finding) -> Workload:
    """The workload of a finding as it was asked for. The recording of an application also has what it said."""
    if isinstance(planned.workloads, ListSelection) and planned.application is not None:
        return planned.workloads.workloads[0]
    return parse_workload(finding.workload_text, finding.workload_name)


def finding_fields(planned: PlannedPart, finding: Finding) -> dict[str, Any]:
    """What a failure tells of the finding that stands for it."""
    return {
        "message": finding.message,
        "loss": headline(finding),
        "lost": tuple(kinds_lost(finding)),
        "beside": tuple(unlike_reference(finding.explanation)) if finding.explanation is not None else (),
        "objections": tuple(each.told for each in objections(finding, planned.target)),
        "finding": finding.id,
        "name": finding.workload_name,
        "operations": workload_in(planned, finding).without_tail().to_text(),
    }


def cause_of_finding(planned: PlannedPart, finding: Finding) -> str:
    """The id of the cause of a finding that the part has made."""
    return _cause_id(planned, cause_of(finding))


def _cause_id(planned: PlannedPart, cause: Cause) -> str:
    """The id of a cause on a target and a device model. Kernels, parts of the file and counts make no difference."""
    words = (planned.target.name, planned.how.model, cause.checker, cause.message, *cause.lost)
    if planned.application is not None:
        words = (planned.application.name, *words)
    return cause_id(words)
