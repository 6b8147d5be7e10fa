"""Defines a post-crash property."""

from abc import abstractmethod

from postcrash.model import Workload
from postcrash.model.judge import RecoveryJudge


class Property(RecoveryJudge):
    """A promise about every tree that a crash can leave behind, with the workloads that put it to the test.

    It can `check` any workload, not only those of the family. If the statement concerns nothing in the workload, the
    opinion is not relevant.
    """

    title: str
    """A few words for the head of a table."""
    statement: str
    """The promise, in prose."""
    source: str
    """Where the promise is defined."""
    exclusions: tuple[str, ...]
    """What the statement could be read to cover but the property does not judge, in prose."""

    @abstractmethod
    def workloads(self) -> tuple[Workload, ...]:
        """The family: short workloads, without tail, that break the property on file systems that do not have it."""
