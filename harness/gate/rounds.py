"""Run the parts of a gate in the time that they have, in rounds."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from postcrash.harness.budget import is_over
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import kept_evidence
from postcrash.harness.gate.baseline import BaselineLine
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.running import cause_of_finding, not_begun, run_part, short_of_time
from postcrash.harness.hunting.hunt import HuntProgress
from postcrash.store.gate_run import Failure, Part, PartKey
from postcrash.store.records import Finding

APPLICATION_SHARE = 0.8
"""An application may explore for this share of its time; the rest is for starting guests and for confirming."""


@dataclass(slots=True)
class Runner:
    """Runs planned parts.

    until     when all must end, by the monotonic clock; None: each part runs to its end
    baseline  known failures; `progress` is not told when they are found
    progress  makes a listener that is told how a part gets on
    finished  is told of each part that has been run to its end
    """

    session: Session
    guests: int | None
    until: float | None
    baseline: Sequence[BaselineLine]
    progress: Callable[[PlannedPart], AbstractContextManager[HuntProgress]]
    finished: Callable[[Part], None]
    interrupted: bool = False
    """Whether the user has interrupted a part. Then no other part is run."""
    _done: dict[PartKey, Part] = field(default_factory=dict)
    _told: set[tuple[PartKey, str]] = field(default_factory=set)
    """Causes that the user has been told of, with their parts."""

    def run(self, planned: Sequence[PlannedPart], in_order: Sequence[PlannedPart]) -> tuple[Part, ...]:
        """The parts, in the order of `planned`. They have their turns in the order of `in_order`.

        A part that our own machinery cannot run is left open, and does not keep the others from being run.
        The time is shared out evenly. What a part leaves of its share is for the parts after it. When all had their
        turn, unfinished parts go on where they were.
        """
        todo = list(in_order)
        while todo:
            before = {each.key: self._left(each) for each in todo}
            for number, each in enumerate(todo):
                self._turn(each, shares=len(todo) - number)
            open_parts = [each for each in todo if self.is_open(each)]
            got_on = any(self._left(each) != before[each.key] for each in open_parts)
            todo = open_parts if got_on and self._has_time else []
        return tuple(self._done[each.key] for each in planned)

    def is_open(self, planned: PlannedPart) -> bool:
        """Whether more time would tell more of the part."""
        return self._left(planned) != 0

    @property
    def _has_time(self) -> bool:
        return not self.interrupted and not is_over(self.until)

    def _left(self, planned: PlannedPart) -> int | None:
        """How many workloads of the part are not finished; None if it was not begun."""
        part = self._done.get(planned.key)
        return None if part is None else part.unfinished

    def _turn(self, planned: PlannedPart, shares: int) -> None:
        """Run the part in one of `shares` equal shares of the time that is left."""
        known = self._done.setdefault(planned.key, not_begun(planned))
        if not self._has_time:
            return
        now = time.monotonic()
        seconds = None if self.until is None else (self.until - now) / shares
        within = _within(planned, seconds)
        with self.progress(planned) as progress:
            try:
                part, self.interrupted = run_part(
                    *(within, self.session, self.guests, _NewOnly(progress, planned, self)),
                    until=None if seconds is None else now + seconds,
                )
            except InfrastructureError as error:
                part = self._not_run(planned, known, error)
        part = _with_earlier(part if within is planned else short_of_time(planned, part), known)
        self._done[planned.key] = part.model_copy(update={"seconds": round(part.seconds + known.seconds, 3)})
        if not part.unfinished:
            self.finished(self._done[planned.key])

    def _not_run(self, planned: PlannedPart, known: Part, error: InfrastructureError) -> Part:
        """The part as it was before a turn that ended in an error, and why it is open now."""
        console = f"; {kept_evidence(self.session.store.folder, error)}" if error.evidence.strip() else ""
        why = f"it could not be run: {error}{console}"
        if not known.workloads:
            return not_begun(planned, why)
        return known.model_copy(update={"notes": (*known.notes, why), "seconds": 0.0})

    def is_news(self, planned: PlannedPart, finding: Finding) -> bool:
        """Whether a finding is of a new failure that the user has not been told of."""
        part, place = self._done[planned.key], (planned.key, cause_of_finding(planned, finding))
        failure = Failure(cause=place[1], verdict="violated", judge=finding.checker, message="", finding=finding.id)
        is_news = place not in self._told and not any(line.is_about(failure, part.kernel) for line in self.baseline)
        self._told.add(place)
        return is_news


@dataclass(frozen=True, slots=True)
class _NewOnly:
    """Passes on how a part gets on, but no failure that is known."""

    progress: HuntProgress
    planned: PlannedPart
    runner: Runner

    def recoveries(self, count: int) -> None:
        self.progress.recoveries(count)

    def finished(self, plan: Plan, examination: Examination) -> None:
        self.progress.finished(plan, examination)

    def skipped(self) -> None:
        self.progress.skipped()

    def found(self, finding: Finding) -> None:
        if self.runner.is_news(self.planned, finding):
            self.progress.found(finding)


def _within(planned: PlannedPart, seconds: float | None) -> PlannedPart:
    """The part with a smaller budget, if it is an application: an application does not go on where it was.

    The part itself if its own budget is small enough.
    """
    if planned.application is None or seconds is None:
        return planned
    most = seconds * APPLICATION_SHARE / len(planned.workloads.disks)
    budget = planned.how.budget
    if budget.seconds is not None and budget.seconds <= most:
        return planned
    return replace(planned, how=replace(planned.how, budget=replace(budget, seconds=most)))


def _with_earlier(part: Part, before: Part) -> Part:
    """The part with what was violated in its turn before and is not now. What a crash has shown once, it can show.

    An application is run anew in each turn, and need not show the same again.
    """
    now = {failure.cause for failure in part.failures if failure.is_violated}
    gone = [failure for failure in before.failures if failure.is_violated and failure.cause not in now]
    if not gone:
        return part
    failures = (*(failure.model_copy(update={"earlier": True}) for failure in gone), *part.failures)
    return part.model_copy(update={"failures": failures, "verdict": "violated"})
