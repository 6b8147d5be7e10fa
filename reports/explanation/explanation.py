"""The explanation of one finding: which writes the crash lost, when they were made, and what recovery made of them."""

from os import PathLike
from typing import Protocol

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
    Words,
    crash_event,
    raw_epochs,
    shown_epochs,
    shown_lost,
    shown_parts,
    unsent,
)
from postcrash.reports.explanation.explanation_text import render_text
from postcrash.store.consoles import Casualty, console_file
from postcrash.store.explanation_data import (
    Epoch,
    Evidence,
    ExplainedOperation,
    ExplainedWrite,
    Explanation,
    OperationStatus,
    PathComparison,
)
from postcrash.store.json_codec import Json
from postcrash.store.program_calls import CALLS_MAX, ProgramCall, calls_before

EVIDENCE_LINES_MAX = 60
OPERATION_CHARACTERS_MAX = 200
"""A line that a program said may have thousands, such as those of a packed trace."""
CONSOLE = "console of the lost guest"
"""Title of the evidence that says where a console is. The console is long, so it is in a file."""


class ExplanationError(ValueError):
    """The recording or the base image is not the one that the finding is about."""


class Crash(Protocol):
    """The part of a finding that is explained. `Finding` says what each field is."""

    @property
    def workload_name(self) -> str: ...
    @property
    def workload_text(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def interval(self) -> int: ...
    @property
    def choices(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def started(self) -> int: ...
    @property
    def returned(self) -> int: ...
    @property
    def observation(self) -> Json | None: ...
    @property
    def casualty(self) -> Casualty | None: ...
    @property
    def reference_name(self) -> str: ...
    @property
    def reference_outcome(self) -> Json | None: ...


def explain(
    crash: Crash, recording: Recording, base_path: str | PathLike[str], fstype: str | None = None
) -> Explanation:
    """The explanation of `crash`. `recording` was made on the base image in the file `base_path`.

    If `fstype` (such as ext4) is given, that file system's tools are asked what the written blocks are. Raises
    `ExplanationError`, `WorkloadError` and `SimulationError` if the parts do not belong together, and `OSError` if the
    base image cannot be read.
    """
    workload = parse_workload(crash.workload_text, crash.workload_name)
    interval = interval_of(crash, recording, base_path)
    raw = raw_epochs(recording, interval, frozenset(interval.lost(crash.choices)), crash.model)
    parts = [part for part in shown_parts(raw) if part.kind == "write"] if fstype else []
    written = [DiskWrite(part.sector * SECTOR_BYTES, part.data(recording)) for part in parts]
    names = block_names(fstype, recording, base_path, interval.before_event, written) if fstype else WriteNames(())
    words = Words(recording, workload, dict(zip(parts, names.names, strict=True)))
    epochs, epochs_omitted = shown_epochs(raw, words)
    lost, lost_omitted = shown_lost(raw, words)
    observation, failure = _observation(crash)
    reference = _reference(crash)
    comparison: tuple[PathComparison, ...] = ()
    comparison_omitted = 0
    if observation is not None and observation.tree and not workload.runs_programs:
        theirs = reference.tree if reference is not None and reference.tree else None
        comparison, comparison_omitted = compare(_history(workload, crash), observation.tree, theirs)
    return Explanation(
        operations=_operations(workload, crash),
        epochs=epochs,
        epochs_omitted=epochs_omitted,
        lost=lost,
        lost_omitted=lost_omitted,
        named_by=names.tool,
        unnamed=names.problem,
        unsent=unsent(recording, interval, workload, crash.started),
        failure=failure,
        comparison=comparison,
        comparison_omitted=comparison_omitted,
        evidence=_evidence(crash, observation),
        calls=tuple(call.explained for call in shown_calls(crash, recording, interval)),
        reference=crash.reference_name,
        reference_said=_reference_said(observation, reference),
    )


def _reference_said(found: Observation | None, reference: Observation | None) -> str:
    """What the reference shows, if one of the two has no tree."""
    if found is None or reference is None or (found.tree and reference.tree):
        return ""
    return mount_error(reference) or "it mounts"


def shown_calls(crash: Crash, recording: Recording, interval: Interval) -> list[ProgramCall]:
    """The last system calls before the crash."""
    return calls_before(recording, crash_event(interval, crash.started, crash.returned))[-CALLS_MAX:]


def interval_of(crash: Crash, recording: Recording, base_path: str | PathLike[str]) -> Interval:
    """The crash interval of `crash`. Raises `ExplanationError` if the recording has no such crash state."""
    try:
        known = intervals(recording, base_path, crash.model)
    except ValueError as error:
        raise ExplanationError(str(error)) from None
    if crash.interval >= len(known):
        raise ExplanationError(f"crash interval {crash.interval}: this recording has only {len(known)}")
    interval = known[crash.interval]
    try:
        interval.covered(crash.choices)
        crash_event(interval, crash.started, crash.returned)
    except (ValueError, LookupError) as error:
        raise ExplanationError(str(error)) from None
    return interval


def _history(workload: Workload, crash: Crash) -> History:
    try:
        return History(workload, crash.started, crash.returned)
    except ValueError as error:
        raise ExplanationError(f"workload {workload.name}: {error}") from None


def _operations(workload: Workload, crash: Crash) -> tuple[ExplainedOperation, ...]:
    def status(index: int) -> OperationStatus:
        if index < len(workload.setup):
            return "set-up"
        if index < crash.returned:
            return "returned"
        return "in progress" if index < crash.started else "not started"

    return tuple(
        ExplainedOperation(index + 1, cut(str(operation), OPERATION_CHARACTERS_MAX), status(index))
        for index, operation in enumerate(workload.operations)
    )


def _observation(crash: Crash) -> tuple[Observation | None, str]:
    """The observation, and why it has no tree."""
    if crash.observation is None:
        return None, f"the guest was lost: {crash.casualty.what if crash.casualty else 'nobody knows why'}"
    try:
        observation = Observation.from_wire(crash.observation)
    except ObservationError as error:
        return None, f"the agent's report cannot be read: {error}"
    return observation, mount_error(observation)


def _reference(crash: Crash) -> Observation | None:
    """What the reference shows. None if nothing was compared, or if it shows nothing at the instant."""
    try:
        return None if crash.reference_outcome is None else Observation.from_wire(crash.reference_outcome)
    except ObservationError as error:
        raise ExplanationError(f"what {crash.reference_name} shows cannot be read: {error}") from None


def _evidence(crash: Crash, observation: Observation | None) -> tuple[Evidence, ...]:
    said = []
    if observation is not None:
        said.append(("kernel log, warnings and worse", "\n".join(observation.klog)))
        if (repair := observation.repair) is not None:
            said.append((f"repair before the mount, exit status {repair.status}", repair.output))
        if observation.fsck is not None:
            said.append((f"fsck, exit status {observation.fsck.status}", observation.fsck.output))
    if crash.casualty is not None:
        said.append(("what the lost guest's kernel was doing", crash.casualty.stacks))
        said.append((CONSOLE, f"{console_file(crash.casualty)} in the store"))
    return tuple(Evidence(title, last_lines(text)) for title, text in said if text.strip())


def last_lines(text: str) -> str:
    """The part of a long text's end that is shown."""
    lines = text.rstrip().splitlines()
    more = len(lines) - EVIDENCE_LINES_MAX
    return "\n".join([f"({more} earlier lines)", *lines[more:]] if more > 0 else lines)


def block_kind(data: bytes, workload: Workload) -> str:
    """What a written block is: `data` of the workload, or the name of a structure."""
    return "data" if written_by(data, workload) else structure(data)


__all__ = [
    "CONSOLE",
    "Crash",
    "Epoch",
    "Evidence",
    "ExplainedOperation",
    "ExplainedWrite",
    "Explanation",
    "ExplanationError",
    "PathComparison",
    "block_kind",
    "explain",
    "interval_of",
    "last_lines",
    "render_text",
]
