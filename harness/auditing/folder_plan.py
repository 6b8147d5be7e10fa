"""The plan to have judges look at every folder that a workload can leave."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named, tree_recoveries
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.session import Session
from postcrash.model import Workload
from postcrash.model.judge import Judge
from postcrash.targets import Target

FINDINGS_MAX = 5
"""Different messages of the check that are followed up, on each disk."""
BESIDE = ("mounts", "boots")
"""Judges besides the application's check: without a mounted file system it has nothing to look at, and a distribution
that stops at its repair never comes to mounting."""


def folder_plan(
    session: Session,
    workload: Workload,
    target: Target,
    how: Exploration,
    judges: tuple[Judge, ...],
    about: Mapping[str, Any],
    *,
    inodes: int = 0,
) -> Plan:
    """The plan to have `judges` look at every folder that `workload`, with its tail, can leave.

    `about` says in the recording how to judge once more. The target has at least so many `inodes`.
    """
    target = target.with_inodes(inodes)
    recoveries = tuple(replace(each, bytes=True) for each in tree_recoveries(target, how.recovery))
    session.require(target, recoveries)
    beside = (judge for judge in judges_named(BESIDE) if any(kind.shows(judge.looks_at) for kind in recoveries))
    return Plan(
        target=target,
        base=session.base(target),
        kernel=session.kernel.label,
        guest=session.guest(),
        built=session.build(),
        workload=workload,
        judges=(*judges, *beside),
        recoveries=recoveries,
        how=how,
        findings_max=FINDINGS_MAX,
        is_asked_on=False,
        about=about,
    )
