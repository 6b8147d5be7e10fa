"""Verdicts, what they cover, and the exit codes of the command line."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

NO_TIME_FOR_CHECKS = "the budget has no time for more checks"
"""Why it is undecided whether an application accepts what a crash leaves."""


class ExitCode(IntEnum):
    """What a program of ours tells its caller."""

    HOLDS = 0
    VIOLATED = 1
    INTERRUPTED = 2
    INFRASTRUCTURE = 3
    USAGE = 4
    NOTHING_SELECTED = 5
    UNDECIDED = 6


class Verdict(IntEnum):
    """The answer to one question. Verdicts are ordered so that the greater one wins when answers are merged."""

    HOLDS = 0
    UNDECIDED = 1
    VIOLATED = 2

    @property
    def symbol(self) -> str:
        """One character for tables: ✓, ? or ✗."""
        return "✓?✗"[self]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a run that ends with this verdict."""
        return ExitCode[self.name]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all of them. Raises `ValueError` if there are none, because nothing judged is not a pass."""
    return max(verdicts)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a verdict covers.

    states      crash states, exactly
    recoveries  recoveries that were run for them
    outcomes    different observations among them, summed over workloads
    workloads   workloads that were recorded
    model       name of the device model
    bound       what limited the exploration; empty if the whole space was covered; several are joined by `; `
    """

    states: int
    recoveries: int
    outcomes: int
    workloads: int
    model: str
    bound: str = ""

    def __add__(self, other: "Certificate") -> "Certificate":
        """The certificate for both. Raises `ValueError` if they are about different device models."""
        if self.model != other.model:
            raise ValueError(f"certificates of different device models: {self.model!r} and {other.model!r}")
        return Certificate(
            self.states + other.states,
            self.recoveries + other.recoveries,
            self.outcomes + other.outcomes,
            self.workloads + other.workloads,
            self.model,
            "; ".join(sorted(_bounds(self.bound) | _bounds(other.bound))),
        )


def _bounds(joined: str) -> set[str]:
    return set(joined.split("; ")) - {""}
