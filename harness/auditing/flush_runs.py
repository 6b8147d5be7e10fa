"""Runs of an application on a real file system without some of its flushes: is each of them needed there?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from postcrash._core import Recording
from postcrash.apps import Application
from postcrash.apps.protocol import Protocol, Step
from postcrash.harness.auditing.audit import audit
from postcrash.harness.auditing.choice import leaving_out
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.campaign import Progress
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.session import Session
from postcrash.model import Verdict
from postcrash.model.argument import FLUSHES_MAX
from postcrash.reports.tables.applications import AuditCell
from postcrash.targets import Target

FLUSHES = ("fsync", "fdatasync", "sync", "syncfs", "msync")
"""Calls that make something durable and do nothing else. Others cannot be left out."""
NOT_MADE = ", left out"
"""Ends the note of a call that the guest did not make."""


def numbered_flushes(protocol: Protocol) -> dict[int, Step]:
    """The flushes that can be left out, by the numbers that they have in a guest."""
    flushes = (step for step in protocol.steps if step.call in FLUSHES and (step.everything or step.durable))
    return dict(enumerate(flushes, 1))


@dataclass(frozen=True, slots=True)
class FlushRun:
    """An application that ran on a target without some of its flushes, and what its crash states came to.

    flushes   those that were to be left out, by their numbers
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
    together  without as many flushes at once as were found to be needless; None: fewer than two are
    kept      flushes that cannot be left out of a run, or were not, because there were too many
    """

    target: str
    alone: tuple[FlushRun, ...]
    together: FlushRun | None
    kept: tuple[Step, ...]


@dataclass(slots=True)
class FlushRunner:
    """Runs an application on a target without some of its flushes."""

    session: Session
    application: Application
    protocol: Protocol
    target: Target
    how: Exploration
    guests: int | None
    progress: Progress
    numbers: dict[int, int] = field(init=False)
    """The numbers of the flushes that can be left out, by the numbers of their steps."""

    def __post_init__(self) -> None:
        self.numbers = {step.number: number for number, step in numbered_flushes(self.protocol).items()}

    def runs(self, flushes: Sequence[Step], runs_max: int) -> RunsWithout:
        """One run without each flush, at most `runs_max`, and then without those together that are needless alone."""
        tried = [step for step in flushes if step.number in self.numbers][:runs_max]
        alone = [self.without([step]) for step in tried]
        needless = [step for step, run in zip(tried, alone, strict=True) if run.verdict is Verdict.HOLDS]
        kept = tuple(step for step in flushes if step not in tried)
        return RunsWithout(self.target.name, tuple(alone), self._together(needless[:FLUSHES_MAX]), kept)

    def _together(self, needless: Sequence[Step]) -> FlushRun | None:
        """A run without all of them that holds; else one without as many as can be left out one after the other."""
        if len(needless) < 2:
            return None
        whole = self.without(needless)
        if whole.verdict is Verdict.HOLDS:
            return whole
        gone, best = [needless[0]], None
        for step in needless[1:]:
            run = self.without([*gone, step])
            if run.verdict is Verdict.HOLDS:
                gone, best = [*gone, step], run
        return best

    def without(self, steps: Sequence[Step]) -> FlushRun:
        """Run it without these flushes."""
        flushes = {self.numbers[step.number]: step for step in steps}
        changed = leaving_out(self.application, list(flushes))
        try:
            done = audit(self.session, changed, self.target, self.how, self.guests, self.progress)
        except UsageError as error:
            return FlushRun(flushes, (), None, str(error))
        left_out = [_left_out(self.session, result.recording) for result in done.results if result.recording]
        first = tuple(left_out[0]) if left_out else ()
        return FlushRun(flushes, first, done.cell, _doubt(flushes, left_out))


def _doubt(flushes: dict[int, Step], left_out: Sequence[Sequence[str]]) -> str:
    """Why a run says nothing of these flushes: in one of the recordings, others were left out."""
    expected = [flushes[number].call for number in sorted(flushes)]
    for calls in left_out:
        if [call.partition("(")[0] for call in calls] != expected:
            return f"its flushes come in another order there: {', '.join(calls) or 'nothing'} was left out"
    return "" if left_out else "it was not recorded"


def _left_out(session: Session, recording: str) -> list[str]:
    """The calls of a recording that were left out."""
    notes = Recording(session.store.recording_path(recording)).calls()
    texts = [str(note[4]) for note in notes if note[1] == "call-begins"]
    return [text.removesuffix(NOT_MADE) for text in texts if text.endswith(NOT_MADE)]
