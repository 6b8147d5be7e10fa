"""Workloads that users have written into files."""

from pathlib import Path

from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.model import SimulationError, Workload, WorkloadError, load_workload, simulate


def loaded(file: str) -> Workload:
    """Reads the workload in `file`. Raises UsageError if it cannot be read or cannot succeed."""
    try:
        return simulated(load_workload(file), file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except WorkloadError as error:
        raise UsageError(str(error)) from error


def simulated(workload: Workload, file: str) -> Workload:
    """Returns the workload itself. Raises UsageError, which names the line of `file`, if it cannot succeed."""
    try:
        simulate(workload)
    except SimulationError as error:
        raise UsageError(f"{file}:{error.operation.line}: {error}") from error
    return workload


def loaded_from(folder: Path) -> tuple[Workload, ...]:
    """Reads the workloads in the .ops files of `folder`. Raises HarnessError, also if there are none."""
    try:
        files = sorted(folder.glob("*.ops"))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if not files:
        raise NothingSelectedError(f"{folder} has no file whose name ends in .ops")
    return tuple(loaded(str(file)) for file in files)
