"""Defines a checker: one general expectation of every crash state, whatever the workload was for."""

from dataclasses import dataclass
from typing import Literal, Protocol

from postcrash.model import History, Observation


@dataclass(frozen=True, slots=True)
class Objection:
    """What is wrong with one crash state.

    checker  name of the checker that objects
    message  what was expected and what was found
    path     the name in the tree that the objection concerns; empty if it concerns the whole file system
    """

    checker: str
    message: str
    path: str = ""


Stage = Literal["anything", "boot", "mount", "tree"]
"""How far a recovery got: anywhere; past a repair after which a boot goes on; to a mounted file system; to its tree."""


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


class CannotTellError(Exception):
    """The observation does not let the checker decide, for a reason that does not lie in the file system."""


class Checker(Protocol):
    """One general expectation.

    A checker that cannot tell raises. Any exception means that the state is undecided, never that it is fine.
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
        """What its answers depend on besides the workload: names of fields of `History`."""
        ...

    @property
    def looks_at(self) -> tuple[str, ...]:
        """What a recovery must do before the checker is asked: of `walk`, `fsck`, `use_after`, `repair`."""
        ...

    @property
    def needs(self) -> Stage:
        """How far a recovery must have come. The checker cannot judge one that did not come so far."""
        ...

    @property
    def in_shell(self) -> InShell | NotInShell:
        """How the script of a report sees what is wrong."""
        ...

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first thing wrong with `observation`, recovered after a crash at `history`. None if nothing is wrong."""
        ...

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether anything in `observation` could have been wrong. If not, a pass says nothing.

        This is asked only if `check` found nothing wrong. It does not look at contents that are not settled.
        """
        ...
