"""Plans that have judges look at every folder that a workload can leave, and what runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from postcrash.harness.examination.campaign import Progress, run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named, tree_recoveries
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.model import Workload
from postcrash.model.judge import Judge
from postcrash.targets import Target

FINDINGS_MAX = 5
"""The most messages of a check that become findings, on each disk."""
BESIDE = ("mounts", "boots")
"""Judges besides the application's check, which needs a mounted file system. A distribution that stops at its repair
never mounts one."""


@dataclass(frozen=True, slots=True)
class AuditSetup:
    """The session, the exploration, the number of guests and the progress that the runs of an audit share."""

    session: Session
    how: Exploration
    guests: int | None
    progress: Progress

    def examine(self, plans: Sequence[Plan], *, failures: bool = False) -> list[Examination]:
        """Run the plans anew, because nobody knows all the files that a program reads. Errors as of `run_campaign`."""
        crew, store = self.session.crew(self.guests), self.session.store
        return run_campaign(plans, crew, store, self.progress, fresh=True, failures=failures)


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

    `about` goes into the recording, so that findings can be judged again. The target gets at least `inodes` inodes.
    """
    target = target.with_inodes(inodes)
    recoveries = tuple(replace(each, bytes=True) for each in tree_recoveries(target, how.recovery))
    session.require(target, recoveries)
    plan = make_plan(session, target, (*judges, *judges_named(BESIDE)), recoveries, how)
    return replace(plan, workload=workload, findings_max=FINDINGS_MAX, seeks_more_violations=False, about=about)
