"""Explains a finding: which writes the crash lost, when they were made, and the result of recovery."""

from os import PathLike

from postcrash._core import Interval, Recording, intervals
from postcrash.model import History, Observation, ObservationError, Workload, parse_workload
from postcrash.model.observation import mount_error
from postcrash.model.text import cut
from postcrash.model.units import SECTOR_BYTES
from postcrash.reports.explanation.block_content import written_by
from postcrash.reports.explanation.block_names import WriteNames, block_names
from postcrash.reports.explanation.block_part import DiskWrite
from postcrash.reports.explanation.block_structure import structure
from postcrash.reports.explanation.comparison import compare
from postcrash.reports.explanation.epochs import (
    WriteDescriptions,
    crash_event,
    raw_epochs,
    shown_epochs,
    shown_lost,
    shown_parts,
    unsent,
)
from postcrash.store.consoles import console_file
from postcrash.store.explanation_data import (
    Evidence,
    ExplainedOperation,
    Explanation,
    OperationStatus,
    PathComparison,
)
from postcrash.store.program_calls import CALLS_MAX, ProgramCall, calls_before
from postcrash.store.records import Finding

EVIDENCE_LINES_MAX = 60
OPERATION_CHARACTERS_MAX = 200
"""Longer texts are cut: a line that a program printed may have thousands of characters."""
CONSOLE = "console of the lost guest"
"""Title of the evidence that says where a console is. The console is long, so it is in a file."""


class ExplanationError(ValueError):
    """The recording or the base image is not the one that the finding is about."""


def explain(
    finding: Finding, recording: Recording, base_path: str | PathLike[str], fstype: str | None = None
) -> Explanation:
    """Explains the crash of `finding`. `recording` was made on the base image in the file `base_path`.

    If `fstype` (such as ext4) is given, blocks get names from that file system's tools. Raises
    `ExplanationError`, `WorkloadError` and `SimulationError` if the parts do not belong together, and `OSError` if the
    base image cannot be read.
    """
    workload = parse_workload(finding.workload_text, finding.workload_name)
    interval = interval_of(finding, recording, base_path)
    crash = crash_event(interval, finding.started, finding.returned)
    raw = raw_epochs(recording, interval, frozenset(interval.lost(finding.choices)), crash)
    if fstype and len(recording.disks) > 1:
        fstype, problem = "", f"tools name blocks of one disk, and there are {len(recording.disks)}"
    else:
        problem = ""
    parts = [part for part in shown_parts(raw) if part.kind == "write"] if fstype else []
    written = [DiskWrite(part.sector * SECTOR_BYTES, part.data(recording)) for part in parts]
    names = block_names(fstype, recording, base_path, crash, written) if fstype else WriteNames((), problem=problem)
    descriptions = WriteDescriptions(recording, workload, dict(zip(parts, names.names, strict=True)))
    epochs, epochs_omitted = shown_epochs(raw, descriptions)
    lost, lost_omitted = shown_lost(raw, descriptions)
    observation, failure = _observation(finding)
    reference = _reference(finding)
    comparison: tuple[PathComparison, ...] = ()
    comparison_omitted = 0
    if observation is not None and observation.tree and not workload.runs_programs:
        reference_tree = reference.tree if reference is not None and reference.tree else None
        comparison, comparison_omitted = compare(_history(workload, finding), observation.tree, reference_tree)
    return Explanation(
        operations=_operations(workload, finding),
        epochs=epochs,
        epochs_omitted=epochs_omitted,
        lost=lost,
        lost_omitted=lost_omitted,
        named_by=names.tool,
        unnamed=names.problem,
        unsent=unsent(recording, crash, workload, finding.started),
        failure=failure,
        comparison=comparison,
        comparison_omitted=comparison_omitted,
        evidence=_evidence(finding, observation),
        calls=tuple(call.explained for call in shown_calls(finding, recording, interval)),
        reference=finding.reference_name,
        reference_said=_reference_result(observation, reference),
    )


def _reference_result(found: Observation | None, reference: Observation | None) -> str:
    """Says whether the reference mounts, if one of the two has no tree."""
    if found is None or reference is None or (found.tree and reference.tree):
        return ""
    return mount_error(reference) or "it mounts"


def shown_calls(finding: Finding, recording: Recording, interval: Interval) -> list[ProgramCall]:
    """Returns the last system calls before the crash."""
    return calls_before(recording, crash_event(interval, finding.started, finding.returned))[-CALLS_MAX:]


def interval_of(finding: Finding, recording: Recording, base_path: str | PathLike[str]) -> Interval:
    """Returns the crash interval of `finding`. Raises `ExplanationError` if the recording has no such crash state."""
    try:
        known = intervals(recording, base_path, finding.model)
    except ValueError as error:
        raise ExplanationError(str(error)) from None
    if finding.interval >= len(known):
        raise ExplanationError(f"crash interval {finding.interval}: this recording has only {len(known)}")
    interval = known[finding.interval]
    try:
        interval.covered(finding.choices)
        crash_event(interval, finding.started, finding.returned)
    except (ValueError, LookupError) as error:
        raise ExplanationError(str(error)) from None
    return interval


def _history(workload: Workload, finding: Finding) -> History:
    try:
        return History(workload, finding.started, finding.returned)
    except ValueError as error:
        raise ExplanationError(f"workload {workload.name}: {error}") from None


def _operations(workload: Workload, finding: Finding) -> tuple[ExplainedOperation, ...]:
    def status(index: int) -> OperationStatus:
        if index < len(workload.setup):
            return "set-up"
        if index < finding.returned:
            return "returned"
        return "in progress" if index < finding.started else "not started"

    return tuple(
        ExplainedOperation(index + 1, cut(str(operation), OPERATION_CHARACTERS_MAX), status(index))
        for index, operation in enumerate(workload.operations)
    )


def _observation(finding: Finding) -> tuple[Observation | None, str]:
    """Returns the observation, and why it has no tree."""
    if finding.observation is None:
        return None, f"the guest was lost: {finding.casualty.what if finding.casualty else 'nobody knows why'}"
    try:
        observation = Observation.from_wire(finding.observation)
    except ObservationError as error:
        return None, f"the agent's report cannot be read: {error}"
    return observation, mount_error(observation)


def _reference(finding: Finding) -> Observation | None:
    """Returns the reference's outcome, or None if nothing was compared or the reference has none at this instant."""
    try:
        return None if finding.reference_outcome is None else Observation.from_wire(finding.reference_outcome)
    except ObservationError as error:
        raise ExplanationError(f"what {finding.reference_name} shows cannot be read: {error}") from None


def _evidence(finding: Finding, observation: Observation | None) -> tuple[Evidence, ...]:
    evidence = []
    if observation is not None:
        evidence.append(("kernel log, warnings and worse", "\n".join(observation.klog)))
        if (repair := observation.repair) is not None:
            evidence.append((f"repair before the mount, exit status {repair.status}", repair.output))
        if observation.fsck is not None:
            evidence.append((f"fsck, exit status {observation.fsck.status}", observation.fsck.output))
    if finding.casualty is not None:
        evidence.append(("what the lost guest's kernel was doing", finding.casualty.stacks))
        evidence.append((CONSOLE, f"{console_file(finding.casualty)} in the store"))
    return tuple(Evidence(title, last_lines(text)) for title, text in evidence if text.strip())


def last_lines(text: str) -> str:
    """Returns the last lines of a long text."""
    lines = text.rstrip().splitlines()
    more = len(lines) - EVIDENCE_LINES_MAX
    return "\n".join([f"({more} earlier lines)", *lines[more:]] if more > 0 else lines)


def block_kind(data: bytes, workload: Workload) -> str:
    """What a written block is: `data` of the workload, or the name of a structure."""
    return "data" if written_by(data, workload) else structure(data)
