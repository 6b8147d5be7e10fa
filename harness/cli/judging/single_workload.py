"""One workload on one target: what `postcrash check` and tests of pytest do alike."""

from dataclasses import replace

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import recoveries_for
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.plan_outline import outline
from postcrash.harness.examination.session import Session
from postcrash.model import Workload
from postcrash.model.judge import Judge
from postcrash.targets import Target

FINDINGS_MAX = 5
"""The most messages of one judge that are followed up."""


def check_plan(
    session: Session, target: Target, workload: Workload, judges: tuple[Judge, ...], how: Exploration
) -> Plan:
    """The plan to have `judges` look at every crash state that `workload`, with its tail, can leave on `target`.

    Raises HarnessError if the guest lacks something that is needed.
    """
    wanted = recoveries_for(judges, target, how.recovery)
    if how.depth > 1 and not any(kind.walk for kind in wanted):
        names = ", ".join(judge.name for judge in judges)
        raise UsageError(f"--depth 2 shows trees after a second crash, and no judge of {names} looks at trees: add one")
    session.require(target, wanted)
    outlined = outline(session, target, judges, wanted, how)
    return replace(outlined, workload=workload.with_tail(), findings_max=FINDINGS_MAX)
