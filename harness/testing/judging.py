"""Judges a workload and passes, fails or skips the test accordingly."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from postcrash.harness.auditing.canary import why_untested
from postcrash.harness.auditing.folder_judge import FolderJudge
from postcrash.harness.auditing.folder_plan import folder_plan
from postcrash.harness.errors import OperationFailedError, UsageError
from postcrash.harness.examination.judges import is_shown, why_never
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import plan_check
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.support import WORKS_ELSEWHERE
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.reference import opened
from postcrash.harness.testing.messages import objections, place, story, verdict_line
from postcrash.harness.testing.rig import Case, Rig, fail
from postcrash.model import Verdict, Workload
from postcrash.model.judge import Judge


def judge_operations(
    rig: Rig, case: Case, workload: Workload, node: pytest.Item, *, skip_untested: bool = False
) -> None:
    """Judges every crash state of `workload` by the property of `case`, or by everything that is expected.

    The test fails unless the verdict is HOLDS. If the property is not put to the test, the test fails, too, or is
    skipped with `skip_untested`. Raises HarnessError.
    """
    with opened(rig.session, rig.expected, case.target, rig.how) as expected:
        plan = plan_check(rig.session, case.target, workload, _judges(rig, case, expected), rig.how)
        result = _examined(rig, plan)
        if reason := _why_untested(case, plan, result):
            (pytest.skip if skip_untested else fail)(reason)
        _decide(rig, plan, result, expected, node)


def judge_folders(
    rig: Rig,
    case: Case,
    workload: Workload,
    judge: FolderJudge,
    about: Mapping[str, Any],
    node: pytest.Item,
    again: str,
) -> None:
    """Judges every folder that `workload` can leave, on a disk that completes at once and on one that delays.

    The test fails unless the check accepts all of them, and also if the check cannot fail. Raises HarnessError.
    """
    for held in rig.how.disks(one=False):
        how = replace(rig.how, held=held)
        plan = folder_plan(rig.session, workload.with_tail(), case.target, how, (judge,), about)
        result = _examined(rig, plan, fresh=True)
        _decide(rig, plan, result, rig.expected, node, again)
    if reason := why_untested(judge):
        fail(f"NOT PUT TO THE TEST: {reason}")


def _judges(rig: Rig, case: Case, expected: Expectation) -> tuple[Judge, ...]:
    if case.prop is not None:
        return (case.prop,)
    judges = expected.judges(case.target, rig.how.model)
    return tuple(judge for judge in judges if is_shown(judge, case.target, rig.how.recovery))


def _examined(rig: Rig, plan: Plan, *, fresh: bool = False) -> Examination:
    """Examines the plan. Skips the test if the file system lacks an operation, on both kernels if two are compared.

    Raises UsageError if an operation fails that has succeeded in another test.
    """
    support = rig.support[plan.target.name]
    try:
        result = rig.examine(plan, fresh=fresh)
    except OperationFailedError as error:
        if error.unlike:
            raise UsageError(f"{error}, but {error.unlike}") from error
        if not error.is_unsupported:
            raise
        support.refused(error.variant)
        if support.has(error.variant):
            raise UsageError(f"{error}, but {WORKS_ELSEWHERE}") from error
        pytest.skip(f"{plan.target.name} on {plan.kernel} does not support {error.operation}: {error}")
    contradictions = support.contradictions
    support.ran(plan.workload)
    for word, *_ in support.contradictions - contradictions:
        raise UsageError(f"{word} works here on {plan.target.name}, but a test was skipped because it failed there")
    return result


def _why_untested(case: Case, plan: Plan, result: Examination) -> str:
    tested = [name for name, ruling in result.rulings.items() if ruling.is_tested]
    never = why_never(case.prop.name, plan.how.model) if case.prop is not None else ""
    if tested and not (never and result.verdict is Verdict.HOLDS):
        return ""
    judges = ", ".join(judge.name for judge in plan.judges)
    reason = never or "its premise is true in no crash state of this workload"
    return f"NOT PUT TO THE TEST: {judges} on {place(plan)}: {reason}"


def _decide(
    rig: Rig, plan: Plan, result: Examination, expected: Expectation, node: pytest.Item, again: str = ""
) -> None:
    if result.verdict is Verdict.HOLDS:
        node.add_report_section("call", "postcrash", verdict_line(plan, result))
        return
    stories = [story(rig, finding, again) for finding in result.findings[:1]]
    fail("\n\n".join([objections(plan, result, expected), *stories]))
