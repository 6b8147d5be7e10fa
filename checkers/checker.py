"""Defines a checker: one general expectation of every crash state, whatever the workload was for."""

from dataclasses import dataclass
from typing import Literal

from postcrash.model.judge import RecoveryJudge


@dataclass(frozen=True, slots=True)
class InShell:
    """How a shell script sees what a checker objects to.

    kind      `tree`: the names that were found show it, and no more words are needed; `mount`: the mount fails; `fsck`:
              fsck objects; `boot`: `tests` are true of the `status` of the repair before the mount
    expected  in words
    found     in words
    tests     commands of the shell that all succeed
    """

    kind: Literal["tree", "mount", "fsck", "boot"]
    expected: str = ""
    found: str = ""
    tests: tuple[str, ...] = ()


TREE_IN_SHELL = InShell("tree")


@dataclass(frozen=True, slots=True)
class NotInShell:
    """A shell script cannot see what the checker objects to. `reason` says why."""

    reason: str


class Checker(RecoveryJudge):
    """One general expectation."""

    statement: str
    """What is expected, in prose."""
    in_shell: InShell | NotInShell = TREE_IN_SHELL
    """How the script of a report sees what is wrong."""
