"""Judges: each checks one thing about what a recovery showed, and gives an opinion."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol

from postcrash.model.exit_status import why_boot_stops
from postcrash.model.history import History
from postcrash.model.observation import Observation, shown_unread
from postcrash.model.tree import ROOT_PATH
from postcrash.model.verdict import Verdict

INSTANT = ("started", "returned")
"""The fields of a history besides the workload."""
Stage = Literal["anything", "boot", "mount", "tree"]
"""How far a recovery got: anywhere; past a repair after which a boot goes on; to a mounted file system; to its tree."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge says of one observation.

    verdict   HOLDS, VIOLATED, or UNDECIDED where the judge cannot tell
    relevant  the judge's premise was true: there was something in the observation that could have been wrong. A judge
              that HOLDS without a true premise was not put to the test
    message   for VIOLATED what is wrong, for UNDECIDED why; a property that HOLDS may say what was found
    is_last   the judge has no more time: it says the same of everything from now on
    path      the name in the tree that a violation concerns; empty if it concerns the whole file system
    """

    verdict: Verdict
    relevant: bool
    message: str = ""
    is_last: bool = False
    path: str = ""


UNTESTED = Opinion(Verdict.HOLDS, relevant=False)
"""The opinion of a judge whose premise was not true."""


def holds(message: str = "", *, relevant: bool = True) -> Opinion:
    """The opinion that nothing is wrong."""
    return Opinion(Verdict.HOLDS, relevant, message)


def violated(message: str, path: str = "") -> Opinion:
    """The opinion that something is wrong."""
    return Opinion(Verdict.VIOLATED, relevant=True, message=message, path=path)


def undecided(message: str, *, relevant: bool = False) -> Opinion:
    """The opinion that the judge cannot tell."""
    return Opinion(Verdict.UNDECIDED, relevant, message)


class CannotTellError(Exception):
    """The observation does not let the judge decide, for a reason that does not lie in the file system."""


class Judge(Protocol):
    """Checks one thing about every observation."""

    @property
    def name(self) -> str:
        """Short and unique, as in tables and findings."""
        ...

    @property
    def looks_at(self) -> tuple[str, ...]:
        """What a recovery must do before it is judged: fields of `RecoveryKind`."""
        ...

    @property
    def version(self) -> str:
        """What its opinions rest on besides the history, the observation and our own code. Empty for most judges."""
        ...

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The fields of `History`, besides the workload, on which its opinions depend."""
        ...

    def check(self, history: History, observation: Observation) -> Opinion:
        """The opinion on `observation`, recovered after a crash at `history`. Never raises: a failure is undecided."""
        ...


class RecoveryJudge(ABC):
    """A judge of our own: properties and checkers.

    It is undecided where the recovery did not come as far as it `needs`. A judge of trees never HOLDS for a tree that
    was read only in part.
    """

    name: str
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    version = ""
    depends_on: tuple[str, ...] = INSTANT

    @abstractmethod
    def examine(self, history: History, observation: Observation) -> Opinion:
        """The opinion on a recovery that came far enough. Any exception means undecided, never that all is fine."""

    def check(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if reason := _why_not_seen(self.needs, observation):
            return undecided(reason)
        try:
            opinion = self.examine(history, observation)
        except CannotTellError as error:
            return undecided(f"{self.name} cannot tell: {error}")
        except Exception as error:
            return undecided(f"{self.name} failed: {error!r}")
        return unless_unread(opinion, observation) if self.needs == "tree" else opinion


def unless_unread(opinion: Opinion, *observations: Observation) -> Opinion:
    """The opinion of a judge of trees. It becomes undecided if nothing is wrong but a part could not be read.

    The checker `mounts` reports the part that could not be read. Its contents may still be wrong.
    """
    unread = next((unread for each in observations if (unread := each.tree.unread)), None)
    if unread is None or opinion.verdict is not Verdict.HOLDS:
        return opinion
    return undecided(f"in a crash state {shown_unread(unread)}", relevant=opinion.relevant)


def _why_not_seen(stage: Stage, observation: Observation) -> str:
    """Why the recovery did not come as far as `stage`. Empty if it did."""
    if stage == "anything":
        return ""
    if reason := why_boot_stops(observation):
        return reason
    if stage == "boot":
        return ""
    if observation.mount_errno:
        return f"a crash state does not mount (errno {observation.mount_errno})"
    is_missing = stage == "tree" and ROOT_PATH not in observation.tree
    return "the tree of a crash state was not looked at" if is_missing else ""
