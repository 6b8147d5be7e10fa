"""Runs one part of a gate: all its workloads, with the judges of its section."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
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
from postcrash.harness.hunting.hunt import HuntProgress
from postcrash.harness.hunting.hunt_result import Group, HuntResult, OpenQuestion
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.harness.hunting.losses import headline
from postcrash.harness.hunting.probes import Plans, Probe, joined_plan, plans_for
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.model import Verdict, Workload, parse_workload
from postcrash.properties import properties_named
from postcrash.store.gate_run import INTERRUPTED, NO_TIME, UNTESTED, Failure, Part, cause_id
from postcrash.store.records import Finding
from postcrash.store.store import Store

FINDINGS_MAX = 1000
"""The most findings of one judge on one workload. There are many, so that a known one does not hide a new one."""


def run_part(
    planned: PlannedPart, session: Session, guests: int | None, progress: HuntProgress, until: float | None
) -> tuple[Part, bool]:
    """Runs the part until the monotonic clock reaches `until`. Returns it, and whether the user interrupted it.

    Results of earlier runs are taken from the store, except those of applications. Raises HarnessError.
    """
    if planned.kernel is None:
        # The baseline can accept this. Then nothing must hold there.
        return _without_results(planned, f"no kernel called {planned.kernel_name} can run {planned.target.name}"), False
    on_kernel, started = session.on(planned.kernel), time.monotonic()
    with plans_of_part(planned, on_kernel) as (plans, expected):
        # The files that an application reads are not known, so that no earlier result stands for it.
        fresh, crew, store = planned.application is not None, on_kernel.crew(guests), on_kernel.store
        result = run_hunt(planned.workloads, plans, crew, store, progress, fresh=fresh, until=until)
        part = _part(planned, joined_plan(plans), expected, result, store, time.monotonic() - started)
    return part, result.interrupted


def not_begun(planned: PlannedPart, why: str = NO_TIME) -> Part:
    """The part without any results, and the reason: usually there was no time."""
    return _without_results(planned, why).model_copy(
        update={"not_run": planned.workloads.count, "hold": _requirements(planned)}
    )


def short_of_time(planned: PlannedPart, part: Part) -> Part:
    """The part after a run whose budget was cut because of the gate's time. The rest counts as not run."""
    kept = tuple(failure for failure in part.failures if not failure.is_lack_of_time)
    if len(kept) == len(part.failures):
        return part
    counts = {"workloads": max(part.workloads - 1, 0), "not_run": 1}
    return part.model_copy(update={"failures": (*kept, _undecided(planned, _question(NO_TIME, 1))), **counts})


def _without_results(planned: PlannedPart, why: str) -> Part:
    return Part(
        **_identity(planned),
        model=planned.how.model,
        verdict="undecided",
        failures=(_undecided(planned, _question(why, planned.workloads.count or 0)),),
    )


def _identity(planned: PlannedPart) -> dict[str, Any]:
    """The fields of a part that its results do not change."""
    return {
        "name": planned.name,
        "kind": planned.kind,
        "target": planned.target.name,
        "kernel": planned.key[2],
        "expect": planned.expected.name,
        "section_digest": planned.section_digest,
    }


def _requirements(planned: PlannedPart) -> dict[str, str | None]:
    """The properties that must hold, before they are compared with the baseline. Applications have none."""
    return dict.fromkeys(planned.hold if planned.application is None else ())


@contextmanager
def plans_of_part(planned: PlannedPart, session: Session) -> Iterator[tuple[Plans, Expectation]]:
    """The plan of each probe, and the expectation with its judge. Both end with the context.

    Only the default hunt has more than one probe.
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
        for prop in properties_named(",".join(planned.hold)) if planned.hold else ():
            judges.setdefault(prop.name, prop)
        probes = planned.workloads.space.probes if isinstance(planned.workloads, DefaultSelection) else (Probe.WALK,)
        plans = plans_for(session, target, tuple(judges.values()), how, planned.kinds, probes)
        yield {probe: replace(plan, findings_max=FINDINGS_MAX) for probe, plan in plans.items()}, expected


def _part(
    planned: PlannedPart, plan: Plan, expected: Expectation, result: HuntResult, store: Store, seconds: float
) -> Part:
    violated = tuple(_violated(planned, expected, group, store) for group in result.groups.values())
    undecided = tuple(_undecided(planned, question) for question in _questions(planned, result))
    counts = result.counts
    return Part(
        **_identity(planned),
        model=plan.how.model,
        verdict="violated" if violated else "undecided" if undecided else "holds",
        workloads=result.run,
        not_run=result.not_run,
        states=str(counts["covered"]),
        states_total=str(counts["states"]),
        instants=counts["instants"],
        recoveries=counts["recoveries"],
        remembered=counts["remembered"],
        outcomes=counts["outcomes"],
        seconds=round(seconds, 3),
        tested={judge.name: result.tested[judge.name] for judge in plan.judges},
        failures=(*violated, *undecided),
        lacking=dict(result.lacking),
        hold=_requirements(planned),
        notes=tuple(result.notes),
    )


def _questions(planned: PlannedPart, result: HuntResult) -> Iterator[OpenQuestion]:
    """The open questions. Operations that the file system lacks are open questions if a corpus needs them."""
    yield from result.open_questions()
    for reason, count in result.refused.items():
        yield _question(f"could not be run: {reason}", count)
    if result.cut_short:
        yield _question("a workload is violated, and not all of its crash states were looked at", result.cut_short)
    if result.interrupted:
        yield _question(INTERRUPTED, result.not_run)
    elif result.not_run:
        yield _question(NO_TIME, result.not_run)
    elif not result.tested:
        yield _question(UNTESTED, result.run)
    if planned.kind == "corpus":
        for reason, count in result.lacking.items():
            yield _question(f"not on this file system: {reason}", count)


def _question(why: str, workloads: int) -> OpenQuestion:
    """A question that is open for all judges."""
    return OpenQuestion("", why, why, workloads)


def _undecided(planned: PlannedPart, question: OpenQuestion) -> Failure:
    """The failure for an open question. Numbers in its words make no difference to the cause."""
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
    minimal = found if found.minimal is None else store.finding(found.minimal)
    # Commands that minimize look for the same judge only, so that the smaller finding can have another cause.
    finding = minimal if cause_of_finding(planned, minimal) == cause else found
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
    """The workload of a finding as it was planned. The recording of an application also has its output."""
    if isinstance(planned.workloads, ListSelection) and planned.application is not None:
        return planned.workloads.workloads[0]
    return parse_workload(finding.workload_text, finding.workload_name)


def finding_fields(planned: PlannedPart, finding: Finding) -> dict[str, Any]:
    """The fields of a failure that show the finding that stands for it."""
    return {
        "message": finding.message,
        "loss": headline(finding),
        "lost": tuple(cause_of(finding).lost),
        "beside": tuple(finding.explanation.reference_differences()) if finding.explanation is not None else (),
        "objections": tuple(each.text for each in objections(finding, planned.target)),
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
    if cause.distinction:
        words = (*words, cause.distinction)
    if planned.application is not None:
        words = (planned.application.name, *words)
    return cause_id(words)
