"""Defines a post-crash property, and the result of judging one recovered tree against it."""

from dataclasses import dataclass
from typing import Protocol

from postcrash.model import History, Tree, Workload


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer for one recovered tree.

    holds     the property is not broken here
    relevant  the property's premise was true here, so a pass says something (the *sometimes* witness)
    message   what was found, for a reader who has the workload; empty if the premise was not true
    """

    holds: bool
    relevant: bool
    message: str


IRRELEVANT = Judgement(holds=True, relevant=False, message="")
"""The judgement when the premise was not true."""


class Property(Protocol):
    """A promise about every tree that a crash can leave behind, with the workloads that put it to the test.

    `judge` may be called for any workload, not only those of the family. If the statement concerns nothing in the
    workload, the judgement is not relevant. It is a function of its arguments alone.
    """

    @property
    def name(self) -> str:
        """Short and unique: `P1`."""
        ...

    @property
    def title(self) -> str:
        """A few words for the head of a table."""
        ...

    @property
    def statement(self) -> str:
        """The promise, in prose."""
        ...

    @property
    def source(self) -> str:
        """Where the promise is defined."""
        ...

    @property
    def exclusions(self) -> tuple[str, ...]:
        """What the statement could be read to cover but the property does not judge, in prose."""
        ...

    def workloads(self) -> tuple[Workload, ...]:
        """The family: short workloads, without tail, that break the property on file systems that do not have it."""
        ...

    def judge(self, history: History, tree: Tree) -> Judgement:
        """Whether `tree`, recovered after a crash at `history`, agrees with the statement."""
        ...
