"""Notation of workload families: one workload in a row, in the `.ops` language with `; ` for line ends."""

from functools import cache

from postcrash.model import Workload, parse_workload
from postcrash.model.tree import ROOT_PATH
from postcrash.model.workload import SEPARATOR

Row = tuple[str, str, str]
"""Name, set-up (may be empty), recorded operations."""
D_AND_E = "mkdir D; mkdir E"
"""A set-up with two directories."""
PUSHED = ("writeback a", "commit; writeback a", "fsync a")
"""Ends that put what was done to `a` on the disk, each in another way."""


@cache
def family(*rows: Row) -> tuple[Workload, ...]:
    """The workloads of `rows`. Raises `WorkloadError` if a row cannot be parsed.

    A property asks for its workloads when they are wanted: to parse all of them takes a tenth of a second.
    """
    return tuple(_workload(*row) for row in rows)


def endings(name: str, setup: str, operations: str, *ends: str) -> tuple[Row, ...]:
    """A row for the operations alone, and a row for the operations with each of `ends`: `NAME-fsync-b`."""
    longer = ((f"{name}-{_slug(end)}", setup, f"{operations}; {end}") for end in ends)
    return ((name, setup, operations), *longer)


def _slug(operations: str) -> str:
    return "-".join(
        "root" if word == ROOT_PATH else word for word in operations.replace(";", "").replace("/", "-").split()
    )


def _workload(name: str, setup: str, operations: str) -> Workload:
    parts = [*setup.split("; "), SEPARATOR] if setup else []
    return parse_workload("\n".join([*parts, *operations.split("; ")]), name)
