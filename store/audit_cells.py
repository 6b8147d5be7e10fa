"""The results of an audit that its table shows, one cell for an application and a target."""

from collections.abc import Mapping
from dataclasses import dataclass

from postcrash.model import Verdict


@dataclass(frozen=True, slots=True)
class AuditCell:
    """What an application comes to on a target, over all disks.

    states, total  crash states that were judged, and all that there are, of all instants
    folders        different folders, with what had been acknowledged, that the check was asked about
    recordings     so many were made, on all disks together
    ways           so many of these differ by more than contents
    unseen         the share of runs that differ from all of these is at most this, with a confidence of 95%
    message        what the check says, or why it is undecided; empty if it holds
    finding        id of the finding that shows it; empty if there is none
    """

    application: str
    target: str
    verdict: Verdict
    states: int
    total: int
    recoveries: int
    folders: int
    recordings: int
    ways: int
    message: str
    finding: str
    unseen: float = 1.0


@dataclass(frozen=True, slots=True)
class SynchronyAnswer:
    """What one judge says of a program on a target, over all disks.

    why      what is wrong, or why it is undecided; empty if it holds
    finding  id of the finding that shows it; empty if there is none
    """

    verdict: Verdict
    why: str
    finding: str


@dataclass(frozen=True, slots=True)
class SynchronyCell:
    """What a program comes to on a target. `answers` are by the names of the judges, with equal names in all cells.

    states, total  crash states that were judged, and all that there are, of all instants
    """

    program: str
    target: str
    answers: Mapping[str, SynchronyAnswer]
    states: int
    total: int
    recoveries: int
