"""The one place where plans are made.

A plan without its workload is the same for all workloads of a table, a hunt, a corpus or a comparison, which put their
workloads in its place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from postcrash.harness.budget import Budget
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.comparison import recorded_alike
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import recoveries_for
from postcrash.harness.examination.plan import Explainer, Plan
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.examination.repair import ONLY_REPAIRED
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.model import Workload, parse_workload
from postcrash.model.judge import Judge
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import Finding
from postcrash.targets import BaseImage, RecoveryKind, Target

CHECK_FINDINGS_MAX = 5
"""The most messages of one judge that are followed up if a single workload is checked."""


def make_plan(
    session: Session,
    target: Target,
    judges: Iterable[Judge],
    recoveries: Sequence[RecoveryKind],
    how: Exploration,
    kernel: Kernel | None = None,
    base: BaseImage | None = None,
) -> Plan:
    """The plan for each workload, on `kernel` or the session's kernel. The smallest workload stands in for them.

    Only judges that want one of the recoveries are taken. If one of them compares with a reference, the workloads are
    recorded as they are there. `base` is the base image, if it is not to be made.
    """
    assert session.explainer is not None, "a session that makes plans has an explainer"
    kernel = kernel or session.kernel
    chosen = tuple(judge for judge in judges if any(kind.shows(judge.looks_at) for kind in recoveries))
    return Plan(
        target=target,
        base=base or session.base(target, kernel),
        kernel=kernel.label,
        guest=session.guest(kernel),
        built=session.build(kernel),
        workload=parse_workload("sync", "none"),
        judges=chosen,
        recoveries=tuple(recoveries),
        how=recorded_alike(how, chosen),
        explainer=session.explainer,
    )


def plan_check(
    session: Session, target: Target, workload: Workload, judges: tuple[Judge, ...], how: Exploration
) -> Plan:
    """The plan to have `judges` look at every crash state that `workload`, with its tail, can leave on `target`.

    Raises HarnessError if the guest lacks something that is needed.
    """
    recoveries = recoveries_for(judges, target, how.recovery)
    if how.depth > 1 and not any(kind.walk for kind in recoveries):
        names = ", ".join(judge.name for judge in judges)
        raise UsageError(f"--depth 2 shows trees after a second crash, and no judge of {names} looks at trees: add one")
    session.require(target, recoveries)
    plan = make_plan(session, target, judges, recoveries, how)
    return replace(plan, workload=workload.with_tail(), findings_max=CHECK_FINDINGS_MAX)


def plan_again(
    finding: Finding,
    target: Target,
    base: BaseImage,
    provenance: Provenance,
    *,
    kernel: str,
    guest: str,
    explainer: Explainer,
    recoveries_max: int | None = None,
    judges: tuple[Judge, ...] = (),
    built: KernelBuild | None = None,
) -> Plan:
    """The plan to examine the finding's workload as it was examined before, with only `judges`.

    If the finding shows only after a repair, the crash states are also mounted alone, to check that this stays so. If
    guests were lost while they ran the workload, nothing is recovered: running the workload is enough.
    """
    recoveries: tuple[RecoveryKind, ...] = ()
    if not finding.is_of_run:
        known = finding.recovery
        ways = (False, True) if finding.message.endswith(ONLY_REPAIRED) else (known.is_repaired,)
        recoveries = tuple(
            target.recovery(walk=known.walk, fsck=bool(known.fsck), use=known.use_after, repair=repair)
            for repair in ways
        )
    return Plan(
        target=target,
        base=base,
        kernel=kernel,
        guest=guest,
        built=built,
        workload=parse_workload(finding.workload_text, finding.workload_name),
        judges=judges,
        recoveries=recoveries,
        how=Exploration(
            finding.model,
            Budget(recoveries_max, seconds=None),  # so that every run comes to the same minimum
            depth=1 if state_below(finding) is None else 2,
            held=provenance.held,
            recorder=provenance.recorder_again,
        ),
        explainer=explainer,
    )
