"""Runs of an application on a real file system without some of its flushes: is each of them needed there?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from postcrash.apps import Application
from postcrash.apps.protocol import Protocol, Step
from postcrash.harness.auditing.application_choice import leaving_out
from postcrash.harness.auditing.audit import Audit, audit
from postcrash.harness.auditing.flushes import Flush, flush_difference, flushes_in, flushes_of
from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.campaign import Progress
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.model import Verdict
from postcrash.model.argument import FLUSHES_MAX
from postcrash.store.table_rows import AuditCell
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class FlushRun:
    """An application that ran on a target without some of its flushes, and what its crash states came to.

    flushes   those that were to be left out, by their numbers in the guest
    left_out  what was left out there, as its calls
    cell      None: it could not be run
    doubt     why this says nothing of these flushes; empty: it does
    """

    flushes: dict[int, Step]
    left_out: tuple[str, ...]
    cell: AuditCell | None
    doubt: str = ""

    @property
    def verdict(self) -> Verdict:
        """Of the run; UNDECIDED where it says nothing of these flushes."""
        return Verdict.UNDECIDED if self.cell is None or self.doubt else self.cell.verdict


@dataclass(frozen=True, slots=True)
class RunsWithout:
    """Runs of one application on one target without flushes.

    alone     each without one flush, in their order
    together  without as many flushes at once as were found to be needless; None: no two were
    kept      flushes that cannot be left out of a run, or were not, because there were too many
    doubt     why there are no runs; empty: there are
    """

    target: str
    alone: tuple[FlushRun, ...] = ()
    together: FlushRun | None = None
    kept: tuple[Step, ...] = ()
    doubt: str = ""


@dataclass(slots=True)
class FlushRunner:
    """Runs an application on a target without some of its flushes.

    whole  its run there with all of them, on each disk
    """

    session: Session
    application: Application
    protocol: Protocol
    whole: Audit
    target: Target
    how: Exploration
    guests: int | None
    progress: Progress
    runs_max: int
    _flushes: list[list[Flush]] = field(init=False)
    """Of the run with all flushes, on each disk."""

    def __post_init__(self) -> None:
        self._flushes = [_recorded(self.session, result.recording) for result in self.whole.results]

    def runs(self, flushes: Sequence[Step]) -> RunsWithout:
        """One run without each flush, at most `runs_max`, and then without those together that are needless alone."""
        numbers, doubt = self._numbers()
        if doubt:
            return RunsWithout(self.target.name, doubt=doubt)
        tried = [step for step in flushes if step.number in numbers][: self.runs_max]
        alone = [self._without({numbers[step.number]: step}) for step in tried]
        needless = [run.flushes for run in alone if run.verdict is Verdict.HOLDS]
        kept = tuple(step for step in flushes if step not in tried)
        return RunsWithout(self.target.name, tuple(alone), self._together(needless[:FLUSHES_MAX]), kept)

    def _numbers(self) -> tuple[dict[int, int], str]:
        """The numbers in the guest of the traced flushes, by their steps' numbers; or why they are not known."""
        if self.target.supervisor:
            return {}, f"{self.target.supervisor} answers flushes itself, so that none can be left out"
        traced = flushes_of(self.protocol)
        ways = []
        for flushes in self._flushes:
            made = [(number, flush) for number, flush in enumerate(flushes, 1) if flush.succeeded]
            if told := flush_difference([flush for _, flush in traced], [flush for _, flush in made]):
                return {}, f"its flushes there are not those of the traced run: {told}"
            ways.append({step.number: number for (step, _), (number, _) in zip(traced, made, strict=True)})
        if not ways or any(way != ways[0] for way in ways):
            return {}, "its flushes are not the same on both disks"
        return ways[0], ""

    def _together(self, needless: Sequence[dict[int, Step]]) -> FlushRun | None:
        """A run without all of them that holds; else one without as many as can be left out one after the other.

        If nothing can go together with the first one, the others are tried without it; at most `runs_max` runs more.
        """
        if len(needless) < 2:
            return None
        whole = self._without(_joined(needless))
        if whole.verdict is Verdict.HOLDS:
            return whole
        left = self.runs_max
        for start, first in enumerate(needless):
            gone, best = first, None
            for flush in needless[start + 1 :][:left]:
                run = self._without(gone | flush)
                left -= 1
                if run.verdict is Verdict.HOLDS:
                    gone, best = run.flushes, run
            if best is not None:
                return best
        return None

    def _without(self, flushes: dict[int, Step]) -> FlushRun:
        """Run it without these flushes, by their numbers in the guest."""
        changed = leaving_out(self.application, list(flushes))
        try:
            done = audit(self.session, changed, self.target, self.how, self.guests, self.progress)
        except HarnessError as error:
            return FlushRun(flushes, (), None, str(error))
        made = [_recorded(self.session, result.recording) for result in done.results]
        left_out = tuple(flush.text for flush in made[0] if flush.left_out) if made else ()
        return FlushRun(flushes, left_out, done.cell, self._doubt(set(flushes), made))

    def _doubt(self, numbers: set[int], made: Sequence[Sequence[Flush]]) -> str:
        """Why a run says nothing of the flushes of these numbers: it is not the whole run without them."""
        for expected, found in zip(self._flushes, made, strict=True):
            if told := flush_difference(expected, found):
                return f"without it, its flushes are not those of the run with it: {told}"
            gone = {number for number, flush in enumerate(found, 1) if flush.left_out}
            if gone != numbers:
                return f"left out were the flushes {sorted(gone)}"
        return ""


def _joined(flushes: Iterable[dict[int, Step]]) -> dict[int, Step]:
    return {number: step for each in flushes for number, step in each.items()}


def _recorded(session: Session, recording: str) -> list[Flush]:
    return flushes_in(session.store.recording_path(recording)) if recording else []
