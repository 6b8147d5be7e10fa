"""The failures of a gate that are known upstream, each with its page."""

from collections.abc import Sequence

from postcrash.harness.gate.known_findings import page_of
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.running import workload_in
from postcrash.harness.hunting.causes import cause_of
from postcrash.reports.gate.run import Failure, Part
from postcrash.reports.store.store import NotInStoreError, Store


def with_upstream(parts: Sequence[Part], planned: Sequence[PlannedPart], store: Store) -> tuple[Part, ...]:
    """The parts, in which each failure that is known upstream has its page. What applications lose has none."""
    return tuple(
        part
        if plan.application is not None
        else part.model_copy(update={"failures": tuple(_told(failure, part, plan, store) for failure in part.failures)})
        for part, plan in zip(parts, planned, strict=True)
    )


def _told(failure: Failure, part: Part, planned: PlannedPart, store: Store) -> Failure:
    if not failure.finding:
        return failure
    try:
        finding = store.finding(failure.finding)
    except NotInStoreError:
        return failure
    page = page_of(part.target, part.kernel, part.model, cause_of(finding), workload_in(planned, finding))
    return failure.model_copy(update={"upstream": page})
