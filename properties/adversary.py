"""What it takes to break a property: the weakest adversary that shows it.

A workload names what the kernel and other programs do besides the property's own operations. So the workloads of a
property's family tell its adversaries apart. The power may fail at every instant for each of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import takewhile

from postcrash._core import DeviceModel
from postcrash.model import Workload
from postcrash.model.operation import Form, Persistence


class Adversary(IntEnum):
    """Who breaks a property, the weakest first. A stronger one can do all that a weaker one can."""

    PLAIN = 0
    FLUSH = 1
    WRITEBACK = 2
    COMMIT = 3
    HELD = 4
    TORN = 5
    RECOVERY = 6

    @property
    def shown(self) -> str:
        """In words."""
        return ADVERSARIES[self]


ADVERSARIES = {
    Adversary.PLAIN: "a power cut alone",
    Adversary.FLUSH: "an fsync that the property does not ask for",
    Adversary.WRITEBACK: "write-back of some pages before others",
    Adversary.COMMIT: "a commit of the journal's timer in between",
    Adversary.HELD: "a disk that takes its time to complete writes",
    Adversary.TORN: "a disk that tears blocks",
    Adversary.RECOVERY: "a second power cut, during recovery",
}
MARKS = {
    Adversary.PLAIN: "",
    Adversary.FLUSH: "ᶠ",
    Adversary.WRITEBACK: "ʷ",
    Adversary.COMMIT: "ᶜ",
    Adversary.HELD: "ʰ",
    Adversary.TORN: "ᵗ",
    Adversary.RECOVERY: "ʳ",
}
"""Stand beside ✗ in tables."""
BY_WORKLOAD = (Adversary.PLAIN, Adversary.FLUSH, Adversary.WRITEBACK, Adversary.COMMIT)
"""Those that a workload names. The others are choices of how it is run."""
CHOICES = (*BY_WORKLOAD, Adversary.HELD)
"""Those of which a table can have the strongest. Only the last one has a disk that holds completions back, too."""
_KERNEL = {"writeback": Adversary.WRITEBACK, "drop-caches": Adversary.WRITEBACK}


def adversary_in(workload: Workload, family: Sequence[Workload], started: int | None = None) -> Adversary:
    """The adversary in a workload of a property's family, or in so many of its operations that had started.

    What each workload of the family has is the property's own. The operations at a workload's end that make all durable
    are what the kernel does later by itself, so they count for nothing. `started` counts the set-up, too.
    """
    ops_started = None if started is None else max(started - len(workload.setup), 0)
    return max(_adversaries(workload, ops_started) - _own(family), default=Adversary.PLAIN)


def within(workload: Workload, family: Sequence[Workload], strongest: Adversary) -> Workload | None:
    """The workload up to its first operation of a stronger adversary; None if nothing is left of it.

    A power cut before that operation needs none of it.
    """
    allowed = _own(family) | {each for each in Adversary if each <= strongest}
    shorter = workload.without_tail()
    kept = tuple(takewhile(lambda operation: _adversary_of(operation.form) in {None, *allowed}, shorter.ops))
    if kept == shorter.ops:
        return workload
    return replace(shorter, ops=kept) if kept else None


def _own(family: Sequence[Workload]) -> set[Adversary]:
    return set.intersection(*map(_adversaries, family))


def adversary_of_run(model: str, held: int | None, depth: int) -> Adversary:
    """The adversary in how workloads are run: on which disk, and whether recovery is crashed."""
    if depth > 1:
        return Adversary.RECOVERY
    if DeviceModel(model).tears_blocks:
        return Adversary.TORN
    return Adversary.PLAIN if held is None else Adversary.HELD


def _adversaries(workload: Workload, ops_started: int | None = None) -> set[Adversary]:
    """Those in the first ops_started operations, all by default."""
    found = (_adversary_of(operation.form) for operation in workload.without_tail().ops[:ops_started])
    return {each for each in found if each is not None}


def _adversary_of(form: Form) -> Adversary | None:
    if form.environment:
        return _KERNEL.get(form.word, Adversary.COMMIT)
    # An operation that makes its own bytes durable is one of those that properties are about.
    return Adversary.FLUSH if form.persistence not in (None, Persistence.OWN) else None
