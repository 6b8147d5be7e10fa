"""Whether a file system lacks an operation, or fails to do what it can do.

A kernel answers both with the same errno: link(2) fails with EPERM for every file of vfat, and for some files of a file
system with a bug.
"""

from postcrash.model.operation import Variant
from postcrash.model.workload import Workload

WORKS_ELSEWHERE = "it works in another workload"
"""Why an operation that fails as if it were lacking is not lacking."""


class Support:
    """The operations that ran on one target, whatever the workload, and those that it refused."""

    def __init__(self) -> None:
        self._ran: set[Variant] = set()
        self._refused: set[Variant] = set()

    def ran(self, workload: Workload) -> None:
        """Note that every operation of the workload succeeded."""
        self._ran.update(operation.variant for operation in workload.operations)

    def refused(self, variant: Variant) -> None:
        """Note that the operation, with these arguments, failed as if the file system lacked it."""
        self._refused.add(variant)

    def has(self, variant: Variant) -> bool:
        """Whether the operation, with these arguments, ran in any workload."""
        return variant in self._ran

    @property
    def contradictions(self) -> set[Variant]:
        """The operations that both ran and were refused."""
        return self._ran & self._refused
