"""Verdicts, and the exit codes of the command line."""

from collections.abc import Iterable
from enum import IntEnum

NO_TIME_FOR_CHECKS = "the budget has no time for more checks"
"""Why it is undecided whether an application accepts what a crash leaves."""
NO_TIME_FOR_MORE_LOOKS = "there was no time for more than a first look"
"""Why a hunt left out crash states of a workload at which it wanted to look twice."""


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
