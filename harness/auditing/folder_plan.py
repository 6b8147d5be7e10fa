"""The plan to have judges look at every folder that a workload can leave."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import Judge, judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.session import Session
from postcrash.model import Workload
from postcrash.targets import Target

FINDINGS_MAX = 5
"""Different messages of the check that are followed up, on each disk."""
BESIDE = ("mounts",)
"""Judges besides the application's check: without a mounted file system it has nothing to look at."""


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
    recover = replace(target.recovery(walk=True, fsck=False), bytes=True)
    session.require(target, [recover])
    return Plan(
        target=target,
        base=session.base(target),
        kernel=session.kernel.label,
        guest=session.guest(),
        workload=workload,
        judges=(*judges, *judges_named(BESIDE)),
        recoveries=(recover,),
        how=how,
        findings_max=FINDINGS_MAX,
        is_asked_on=False,
        about=about,
    )
