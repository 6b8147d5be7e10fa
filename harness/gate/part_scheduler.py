"""Runs the parts of a gate in the time that they have, and follows up what fails.

Running and following up take turns, so that time that following up leaves goes to the parts. Within a turn, the parts
share the time in rounds: time that one part leaves goes to the others.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from postcrash.harness.budget import is_over
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import kept_evidence
from postcrash.harness.gate.baseline import BaselineLine, compared_with
from postcrash.harness.gate.follow_up import FollowUp
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.running import cause_of_finding, not_begun, run_part, short_of_time
from postcrash.harness.hunting.hunt import HuntProgress
from postcrash.harness.hunting.time_sharing import Turns
from postcrash.store.gate_run import Failure, Part, PartKey
from postcrash.store.records import Finding

APPLICATION_SHARE = 0.8
"""An application may explore for this share of its time; the rest is for starting guests and for confirming."""
FOLLOW_UPS_MAX = 20
"""New failures of one part that are followed up. The others are reported as they were found."""
KNOWN_RETRIES_MAX = 5
"""Known failures of one part whose crash states are recovered again, after all parts were run."""


@dataclass(slots=True)
class Runner:
    """Runs planned parts.

    until        when all must end, by the monotonic clock; None: each part runs to its end
    baseline     known failures, which are not passed on to `progress`
    progress     makes a listener for the progress of a part
    on_finished  is called with each part that has been run to its end
    """

    session: Session
    guests: int | None
    until: float | None
    baseline: Sequence[BaselineLine]
    progress: Callable[[PlannedPart], AbstractContextManager[HuntProgress]]
    on_finished: Callable[[Part], None]
    interrupted: bool = False
    """Whether the user has interrupted a part. Then no other part is run."""
    _results: dict[PartKey, Part] = field(default_factory=dict)
    _announced: set[tuple[PartKey, str]] = field(default_factory=set)
    """Causes that were passed on to `progress`, with their parts."""

    def run(self, planned: Sequence[PlannedPart], in_order: Sequence[PlannedPart]) -> tuple[Part, ...]:
        """Runs the parts in the order of `in_order`, and returns them in the order of `planned`.

        A part that fails for lack of infrastructure is left open, and does not keep the others from being run.
        The time is divided evenly. What a part leaves of its share is for the parts after it. When all had their
        share, unfinished parts go on where they were.
        """
        todo = list(in_order)
        while todo:
            before = {part.key: self._unfinished(part) for part in todo}
            for number, part in enumerate(todo):
                self._run_share(part, shares=len(todo) - number)
            unfinished = [part for part in todo if self.is_open(part)]
            has_progress = any(self._unfinished(part) != before[part.key] for part in unfinished)
            todo = unfinished if has_progress and self._has_time else []
        return tuple(self._results[part.key] for part in planned)

    def is_open(self, planned: PlannedPart) -> bool:
        """Whether more time would tell more of the part."""
        return self._unfinished(planned) != 0

    @property
    def _has_time(self) -> bool:
        return not self.interrupted and not is_over(self.until)

    def _unfinished(self, planned: PlannedPart) -> int | None:
        """How many workloads of the part are not finished; None if it was not begun."""
        part = self._results.get(planned.key)
        return None if part is None else part.unfinished

    def _run_share(self, planned: PlannedPart, shares: int) -> None:
        """Runs the part in one of `shares` equal shares of the time that is left."""
        before = self._results.setdefault(planned.key, not_begun(planned))
        if not self._has_time:
            return
        now = time.monotonic()
        seconds = None if self.until is None else (self.until - now) / shares
        limited = _with_limited_budget(planned, seconds)
        until = None if seconds is None else now + seconds
        with self.progress(planned) as progress:
            news = _NewFindings(progress, planned, self)
            try:
                part, self.interrupted = run_part(limited, self.session, self.guests, news, until=until)
            except InfrastructureError as error:
                part = self._after_error(planned, before, error)
        part = _with_earlier_failures(part if limited is planned else short_of_time(planned, part), before)
        part = part.model_copy(update={"seconds": round(part.seconds + before.seconds, 3)})
        self._results[planned.key] = part
        if not part.unfinished:
            self.on_finished(part)

    def _after_error(self, planned: PlannedPart, before: Part, error: InfrastructureError) -> Part:
        """The part as it was `before` an error, with the error as the reason why it is open."""
        console = f"; {kept_evidence(self.session.store.folder, error)}" if error.evidence.strip() else ""
        why = f"it could not be run: {error}{console}"
        if not before.workloads:
            return not_begun(planned, why)
        return before.model_copy(update={"notes": (*before.notes, why), "seconds": 0.0})

    def is_news(self, planned: PlannedPart, finding: Finding) -> bool:
        """Whether a finding is of a new failure that was not announced yet."""
        part, place = self._results[planned.key], (planned.key, cause_of_finding(planned, finding))
        failure = Failure(cause=place[1], verdict="violated", judge=finding.checker, message="", finding=finding.id)
        is_news = place not in self._announced and not any(line.accepts(failure, part.kernel) for line in self.baseline)
        self._announced.add(place)
        return is_news


@dataclass(frozen=True, slots=True)
class _NewFindings:
    """Passes on the progress of a part, without findings that are known."""

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


def _with_limited_budget(planned: PlannedPart, seconds: float | None) -> PlannedPart:
    """The part with a smaller budget, if it is an application: an application does not go on where it was.

    Returns `planned` itself if its own budget is small enough.
    """
    if planned.application is None or seconds is None:
        return planned
    most = seconds * APPLICATION_SHARE / len(planned.workloads.disks)
    budget = planned.how.budget
    if budget.seconds is not None and budget.seconds <= most:
        return planned
    return replace(planned, how=replace(planned.how, budget=replace(budget, seconds=most)))


def _with_earlier_failures(part: Part, before: Part) -> Part:
    """Adds the violations of the part's round before that are gone now. A crash that has shown one can show it again.

    An application is run anew in each round, and need not show the same again.
    """
    causes = {failure.cause for failure in part.failures if failure.is_violated}
    gone = [failure for failure in before.failures if failure.is_violated and failure.cause not in causes]
    if not gone:
        return part
    failures = (*(failure.model_copy(update={"earlier": True}) for failure in gone), *part.failures)
    return part.model_copy(update={"failures": failures, "verdict": "violated"})


@dataclass(slots=True)
class FollowUps:
    """Follows up failures, each once, and keeps the results for the part's later turns.

    `open` makes what follows failures up, with a listener of its own.
    """

    open: Callable[[], AbstractContextManager[FollowUp]]
    _results: dict[tuple[PartKey, str, str], Failure] = field(default_factory=dict)
    """By part, cause, and the finding that was followed up."""

    def run(self, planned: Sequence[PlannedPart], parts: list[Part], *, is_new: bool) -> bool:
        """Follows up the new failures of the `parts`, which are changed, or recovers states of the known ones again.

        Returns False if the user interrupted this.
        """
        try:
            with self.open() as follow_up:
                for number, (plan, part) in enumerate(zip(planned, parts, strict=True)):
                    if is_new:
                        follow = partial(self._followed, follow_up, plan, part.key)
                        parts[number] = _with_followed(part, follow, FOLLOW_UPS_MAX, is_new=True)
                    else:
                        follow = partial(follow_up.retry_known, plan)
                        parts[number] = _with_followed(part, follow, KNOWN_RETRIES_MAX, is_new=False)
        except KeyboardInterrupt:
            return False
        return True

    def _followed(self, follow_up: FollowUp, planned: PlannedPart, key: PartKey, failure: Failure) -> Failure:
        place = key, failure.cause, failure.found
        if place not in self._results:
            self._results[place] = follow_up(planned, failure)
        current = {name: getattr(failure, name) for name in ("workloads", "known", "known_in", "earlier")}
        return self._results[place].model_copy(update=current)


def run_in_turns(
    runner: Runner,
    planned: Sequence[PlannedPart],
    in_order: Sequence[PlannedPart],
    lines: Sequence[BaselineLine],
    follow_ups: FollowUps,
) -> tuple[tuple[Part, ...], bool]:
    """The parts with their failures followed up, and whether the user interrupted this.

    The parts have their turns in the order of `in_order`, until the time of `runner` is over. Later turns are for
    unfinished parts. Known failures are retried last.
    """
    turns, todo, is_first = Turns(runner.until), list(in_order), True
    parts: list[Part] = []
    while todo:
        runner.until = turns.looking_ends(is_first=is_first)
        before = sum(part.unfinished for part in parts)
        parts = list(compared_with(lines, runner.run(planned, todo)))
        if runner.interrupted or not follow_ups.run(planned, parts, is_new=True):
            return tuple(parts), True
        has_progress = is_first or sum(part.unfinished for part in parts) < before
        todo = [part for part in todo if runner.is_open(part)] if has_progress and turns.has_another else []
        is_first = False
    is_complete = follow_ups.run(planned, parts, is_new=False)
    return tuple(parts), not is_complete


def _with_followed(part: Part, follow: Callable[[Failure], Failure], most: int, *, is_new: bool) -> Part:
    """Follows up at most `most` violated failures of the part: new ones if `is_new`, and else known ones."""
    remaining = most
    failures: list[Failure] = []
    for failure in part.failures:
        if failure.is_new is is_new and failure.is_violated and remaining:
            failure, remaining = follow(failure), remaining - 1
        failures.append(failure)
    return part.model_copy(update={"failures": tuple(failures)})
