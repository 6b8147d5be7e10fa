"""Workloads that known bugs needed: each folder has a README.md that says where they come from."""

from functools import cache
from pathlib import Path

from postcrash.model import Workload, load_workload

FSTESTS = Path(__file__).with_name("fstests")
RECOVERY = Path(__file__).with_name("recovery")


@cache
def shipped() -> tuple[Workload, ...]:
    """The workloads of all folders: those for recovery first, and the short ones of a folder before the long ones."""
    return (*_by_length(RECOVERY), *_by_length(FSTESTS))


def _by_length(folder: Path) -> list[Workload]:
    workloads = map(load_workload, folder.glob("*.ops"))
    return sorted(workloads, key=lambda workload: (len(workload.operations), workload.name))
