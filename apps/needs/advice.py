"""Which flushes of an application are needed, and which are missing.

A flush is needed if the check fails without it. Otherwise it is redundant on file systems with these properties, or
the check does not cover what it is for. The advice is about the model of the program's system calls: no program is run
without a flush.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from postcrash.apps.needs.assumptions import Implication, implications_with, owner_of
from postcrash.apps.needs.needs import BadFolder, EnoughSet, SearchLimits, is_enough
from postcrash.apps.needs.space import Judge
from postcrash.apps.protocol.trace import NameSlot, Protocol, Step

_ADDED_MAX = 12


@dataclass(frozen=True, slots=True)
class FlushAdvice:
    """The first failure without a flush and without the redundant ones before it, or that there is none.

    is_instead  it could go if one of the others did not
    """

    step: Step
    without: BadFolder | EnoughSet
    is_instead: bool = False

    @property
    def can_go(self) -> bool:
        """Whether all folders are fine without it."""
        return isinstance(self.without, EnoughSet) and self.without.is_complete

    @property
    def is_known(self) -> bool:
        """Whether it is known what happens without it."""
        return self.can_go or isinstance(self.without, BadFolder)


@dataclass(frozen=True, slots=True)
class MissingFlush:
    """A flush that would help: of a directory or a file, right after a step.

    failure  what goes wrong without it
    """

    inode: int
    is_folder: bool
    after: Step
    failure: BadFolder


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on an application on file systems with the properties `names`.

    flushes  those that it makes; empty if something fails with all of them
    missing  those that it should make, in the order in which they were found
    result   with the missing ones: enough, or what still fails
    is_cut   no more flushes were tried, so others may mend what still fails
    """

    names: frozenset[str]
    flushes: tuple[FlushAdvice, ...]
    missing: tuple[MissingFlush, ...]
    result: EnoughSet | BadFolder
    is_cut: bool = False

    @property
    def noticed(self) -> int:
        """Number of flushes that the check depends on, after redundant ones are removed."""
        return sum(isinstance(each.without, BadFolder) for each in self.flushes)


def advise(
    protocol: Protocol, judge: Judge, limits: SearchLimits, names: frozenset[str], progress: Callable[[str], None]
) -> Advice:
    """Which flushes are needed and which are missing, on file systems with these properties."""
    implications = implications_with(protocol, names)
    progress("with all flushes")
    result = is_enough(protocol, judge, limits, names)
    missing: list[MissingFlush] = []
    while isinstance(result, BadFolder) and len(missing) < _ADDED_MAX:
        found = _missing(protocol, result, missing)
        if found is None:
            break
        missing.append(found)
        implications |= {_flush_implication(protocol, found)}
        progress(f"with {len(missing)} more flushes")
        result = is_enough(protocol, judge, limits, names, implications)
    is_cut = isinstance(result, BadFolder) and len(missing) == _ADDED_MAX
    flushes = [] if missing or isinstance(result, BadFolder) else [step for step in protocol.steps if _is_flush(step)]
    gone: list[Step] = []
    flush_advice = []

    def without(steps: Sequence[Step]) -> EnoughSet | BadFolder:
        return is_enough(protocol, judge, limits, names, implications_with(_without(protocol, steps), names))

    for step in flushes:
        progress(f"without {step.call} of {step.about} (call {step.number})")
        flush = FlushAdvice(step, without([*gone, step]))
        if flush.can_go:
            gone.append(step)
        elif gone and isinstance(flush.without, BadFolder):
            flush = replace(flush, is_instead=FlushAdvice(step, without([step])).can_go)
        flush_advice.append(flush)
    return Advice(names, tuple(flush_advice), tuple(missing), result, is_cut)


def _is_flush(step: Step) -> bool:
    return step.everything or bool(step.durable)


def _without(protocol: Protocol, flushes: Sequence[Step]) -> Protocol:
    """The protocol, in which these steps make nothing durable. They change what they did, as writes with O_DSYNC do."""
    steps = list(protocol.steps)
    for flush in flushes:
        steps[flush.number] = replace(flush, durable=(), everything=False)
    return replace(protocol, steps=tuple(steps))


def _missing(protocol: Protocol, failure: BadFolder, known: list[MissingFlush]) -> MissingFlush | None:
    """A flush that protects the last lost change that something depends on: a later change, or what had been said."""
    kept = max(failure.state.durable, default=-1)
    has_output = any(step.outputs for step in protocol.steps[: failure.moment.number])
    for change in reversed(failure.state.lost):
        if change.index > kept and not has_output:
            continue
        is_folder = isinstance(change.slot, NameSlot)
        found = MissingFlush(owner_of(change), is_folder, protocol.steps[change.step], failure)
        if not any((each.inode, each.after) == (found.inode, found.after) for each in known):
            return found
    return None


def _flush_implication(protocol: Protocol, flush: MissingFlush) -> Implication:
    """What the flush would promise, once the step after which it stands has returned."""
    earlier = protocol.changes[: flush.after.end]
    covered = frozenset(change.index for change in earlier if owner_of(change) == flush.inode)
    return Implication(frozenset(), covered, flush.after.number)
