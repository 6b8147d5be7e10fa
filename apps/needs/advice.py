"""Which flushes of an application are needed, and which are missing.

A flush is needed if the check fails without it. A flush without which it does not fail can go, on file systems with the
properties that were assumed; or the check does not see what it is for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from postcrash.apps.needs.assumptions import Implication, implications_with, owner_of
from postcrash.apps.needs.needs import BadFolder, EnoughSet, Extent, is_enough
from postcrash.apps.needs.space import Judge
from postcrash.apps.protocol.trace import NameSlot, Protocol, Step

_ADDED_MAX = 12


@dataclass(frozen=True, slots=True)
class FlushAdvice:
    """What happens without a flush: the first failure, or that none was found in so many folders."""

    step: Step
    without: BadFolder | EnoughSet


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
    result   with the missing ones: enough, or what still fails, which no flush mends
    """

    names: frozenset[str]
    flushes: tuple[FlushAdvice, ...]
    missing: tuple[MissingFlush, ...]
    result: EnoughSet | BadFolder

    @property
    def noticed(self) -> int:
        """So many flushes are needed."""
        return sum(isinstance(each.without, BadFolder) for each in self.flushes)


def advise(
    protocol: Protocol, judge: Judge, extent: Extent, names: frozenset[str], progress: Callable[[str], None]
) -> Advice:
    """Which flushes are needed and which are missing, on file systems with these properties."""
    implications = implications_with(protocol, names)
    progress("with all flushes")
    result = is_enough(protocol, judge, extent, names)
    missing: list[MissingFlush] = []
    while isinstance(result, BadFolder) and len(missing) < _ADDED_MAX:
        found = _missing(protocol, result, missing)
        if found is None:
            break
        missing.append(found)
        implications |= {_flush_implication(protocol, found)}
        progress(f"with {len(missing)} more flushes")
        result = is_enough(protocol, judge, extent, names, implications)
    flushes = [] if missing or isinstance(result, BadFolder) else [step for step in protocol.steps if _is_flush(step)]
    found_out = []
    for step in flushes:
        progress(f"without {step.call} of {step.about} (call {step.number})")
        left = implications_with(_without(protocol, step), names)
        found_out.append(FlushAdvice(step, is_enough(protocol, judge, extent, names, left)))
    return Advice(names, tuple(found_out), tuple(missing), result)


def _is_flush(step: Step) -> bool:
    return step.everything or bool(step.durable)


def _without(protocol: Protocol, flush: Step) -> Protocol:
    """The protocol, in which this step makes nothing durable. What it changes stays: it can be a write with O_DSYNC."""
    steps = list(protocol.steps)
    steps[flush.number] = replace(flush, durable=(), everything=False)
    return replace(protocol, steps=tuple(steps))


def _missing(protocol: Protocol, failure: BadFolder, known: list[MissingFlush]) -> MissingFlush | None:
    """A flush that protects the last lost change that something depends on: a later change, or what had been said."""
    kept = max(failure.state.durable, default=-1)
    said = any(step.said for step in protocol.steps[: failure.moment.number])
    for change in reversed(failure.state.lost):
        if change.index > kept and not said:
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
