"""One application on one target: what is run, on which disks, and what all runs come to together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from postcrash.apps import Application
from postcrash.harness.auditing.folder_judge import FolderJudge
from postcrash.harness.auditing.judge import ABOUT, ApplicationJudge, about
from postcrash.harness.examination.campaign import Progress, run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.session import Session
from postcrash.model import Verdict, Workload, worst
from postcrash.model.operation import RUN, Operation
from postcrash.reports.tables.applications import AuditCell
from postcrash.targets import Target

FINDINGS_MAX = 5
"""Different messages of the check that are followed up, on each disk."""
BESIDE = ("mounts",)
"""Judges besides the application's check: without a mounted file system it has nothing to look at."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an application comes to on a target: an examination for each disk on which it ran.

    folders  so many different folders, with what had been acknowledged, were judged now (none where all was known)
    """

    application: Application
    target: Target
    kernel: str
    how: tuple[Exploration, ...]
    results: tuple[Examination, ...]
    folders: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst(result.verdict for result in self.results)

    @property
    def cell(self) -> AuditCell:
        """As a table has it."""
        worst_first = sorted(self.results, key=lambda result: -result.verdict)
        findings = [finding for result in worst_first for finding in result.findings]
        reasons = [
            ruling.reason
            for result in worst_first
            for ruling in result.rulings.values()
            if ruling.verdict is self.verdict
        ]
        return AuditCell(
            application=self.application.name,
            target=self.target.name,
            verdict=self.verdict,
            states=sum(result.covered for result in self.results),
            total=sum(result.states for result in self.results),
            recoveries=sum(result.recoveries for result in self.results),
            folders=self.folders,
            said="" if self.verdict is Verdict.HOLDS else (findings[0].message if findings else "; ".join(reasons)),
            finding=findings[0].id if findings else "",
        )


def workload_of(application: Application) -> Workload:
    """The application's set-up and run, with what the kernel does later by itself."""
    setup, run = (
        tuple(Operation(RUN, value=command, seconds=application.seconds) for command in (text,) if command)
        for text in (application.set_up, application.run)
    )
    return Workload(application.name, setup, run).with_tail()


def audit(
    session: Session,
    application: Application,
    target: Target,
    how: Exploration,
    guests: int | None,
    progress: Progress,
    *,
    one_disk: bool = False,
) -> Audit:
    """Run the application on `target`, on each disk, and have every crash state judged.

    Nobody knows all the files that a program and its check read, so that results of earlier audits are not taken.
    Raises HarnessError where it cannot be run.
    """
    hows = tuple(replace(how, held=held) for held in how.disks(one=one_disk))
    with ApplicationJudge(application, how.budget.seconds) as judge:
        plans = [plan_of(session, application, target, each, judge) for each in hows]
        results = run_campaign(plans, session.crew(guests), session.store, progress, fresh=True)
        return Audit(application, target, session.kernel.label, hows, tuple(results), judge.folders)


def plan_of(
    session: Session, application: Application, target: Target, how: Exploration, judge: ApplicationJudge
) -> Plan:
    """What is run of the application, and judged by `judge` and the judges of `BESIDE`. Raises HarnessError."""
    return folder_plan(session, workload_of(application), target, how, judge, {ABOUT: about(application)})


def folder_plan(
    session: Session,
    workload: Workload,
    target: Target,
    how: Exploration,
    judge: FolderJudge,
    about: Mapping[str, Any],
) -> Plan:
    """The plan to have `judge` look at every folder that `workload`, with its tail, can leave.

    `about` says in the recording how to judge once more.
    """
    recover = replace(target.recovery(walk=True, fsck=False), bytes=True)
    session.require(target, [recover])
    return Plan(
        target=target,
        base=session.base(target),
        kernel=session.kernel.label,
        guest=session.guest(),
        workload=workload,
        judges=(judge, *judges_named(BESIDE)),
        recoveries=(recover,),
        how=how,
        findings_max=FINDINGS_MAX,
        about=about,
    )
