"""What a checker is: one general expectation of every crash state, whatever the workload was for."""

from dataclasses import dataclass
from typing import Protocol

from postcrash.model import History, Observation


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one crash state.

    checker  name of the checker that says so
    message  what was expected and what was found
    path     the name in the tree that it is about; empty if it is about the file system as a whole
    """

    checker: str
    message: str
    path: str = ""


class CannotTellError(Exception):
    """The observation does not let the checker decide, for a reason that is not the file system's."""


class Checker(Protocol):
    """One general expectation.

    A checker that cannot tell raises; any exception means that the state is undecided, never that it is fine.
    """

    @property
    def name(self) -> str:
        """Short and unique: `mounts`."""
        ...

    @property
    def statement(self) -> str:
        """What is expected, in prose."""
        ...

    @property
    def depends_on(self) -> tuple[str, ...]:
        """What of a history its answers depend on besides the workload: names of fields of `History`."""
        ...

    def check(self, history: History, observation: Observation) -> Finding | None:
        """The first thing wrong with `observation`, recovered after a crash at `history`; None if nothing is."""
        ...

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether there was something in `observation` that could have been wrong: without it, a pass says nothing.

        Asked only where `check` found nothing wrong. It does not look at contents that are not settled.
        """
        ...
