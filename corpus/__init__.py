"""Workloads that known bugs needed: each folder has a README.md that says where they come from."""

from functools import cache
from pathlib import Path

from postcrash.model import Workload, load_workload

FSTESTS = Path(__file__).with_name("fstests")
RECOVERY = Path(__file__).with_name("recovery")


@cache
def for_recovery() -> tuple[Workload, ...]:
    """Workloads whose history is what a recovery can get wrong, the short ones first."""
    return _by_length(RECOVERY)


@cache
def of_fstests() -> tuple[Workload, ...]:
    """The power-cut tests of fstests, the short ones first."""
    return _by_length(FSTESTS)


def _by_length(folder: Path) -> tuple[Workload, ...]:
    workloads = map(load_workload, folder.glob("*.ops"))
    return tuple(sorted(workloads, key=lambda workload: (len(workload.operations), workload.name)))
