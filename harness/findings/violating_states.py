"""Counts the crash states of a finding's workload that violate its judge, and the recoveries for this count."""

from postcrash._core import Recording, intervals
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.certified_run import certified_runs
from postcrash.harness.examination.crash_in_recovery import source_of, state_below
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.violation_count import StateCount, violating
from postcrash.harness.files.output import count_text
from postcrash.model import parse_workload
from postcrash.store.records import Finding
from postcrash.store.store import Store

NOT_COUNTED = "Crash states that show it were not counted."
TOO_MANY = "There are too many crash states to count those that show it."


def violating_states(store: Store, finding: Finding) -> str:
    """Returns the count in sentences. Raises UsageError if a certificate does not fit the finding's recording."""
    runs = [run for run in certified_runs(store) if finding.id in run.findings]
    try:
        (judge,) = judges_named([finding.checker])
    except LookupError:
        runs = []
    if not runs or state_below(finding) is not None:
        return NOT_COUNTED
    with source_of(store, finding) as (source, _):
        known = intervals(Recording(source.recording), source.base, finding.model)
    workload = parse_workload(finding.workload_text, finding.workload_name)
    try:
        counted = violating(runs[-1].read_certificates(), known, workload, judge)
    except (ValueError, LookupError) as error:
        raise UsageError(f"a certificate of {finding.recording} does not fit it: {error}") from error
    return TOO_MANY if counted is None else _sentences(counted, finding.checker)


def _sentences(counted: StateCount, judge: str) -> str:
    broken, covered = count_text(counted.broken), count_text(counted.covered)
    recoveries = f"{counted.recoveries} {'recovery' if counted.recoveries == 1 else 'recoveries'}"
    return (
        f"{broken} of the {covered} crash states that were covered break {judge}. They were covered by {recoveries} on "
        f"the kernel named above: one recovery stands for all states that agree in what it read of the disk. A state "
        f"counts once for each instant at which a crash can leave it."
    )
