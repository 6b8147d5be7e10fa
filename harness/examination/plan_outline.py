"""A plan without its workload. It is the same for every workload of a hunt, a corpus or a comparison."""

from collections.abc import Iterable, Sequence

from postcrash.harness.examination.comparison import recorded_alike
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.model import parse_workload
from postcrash.model.judge import Judge
from postcrash.targets import BaseImage, RecoveryKind, Target


def outline(
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
    )
