"""Run the parts of a gate and follow up what fails, by turns: time that following up leaves goes to the parts."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from postcrash.harness.gate.baseline import BaselineLine, compared_with
from postcrash.harness.gate.follow_up import FollowUp
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.gate.rounds import Runner
from postcrash.harness.hunting.time_sharing import Turns
from postcrash.store.gate_run import Failure, Part, PartKey

FOLLOWED_MAX = 20
"""New failures of one part that are followed up. The others are reported as they were found."""
KNOWN_TRIED_MAX = 5
"""Known failures of one part whose crash states are recovered again, after all parts were run."""


@dataclass(slots=True)
class Following:
    """Follows up failures, each once, and keeps what came of it for the part's later turns.

    `follow_ups` makes what follows failures up, with a listener of its own that is told how this gets on.
    """

    follow_ups: Callable[[], AbstractContextManager[FollowUp]]
    _done: dict[tuple[PartKey, str, str], Failure] = field(default_factory=dict)
    """By part, cause, and the finding that was followed up."""

    def new(self, planned: Sequence[PlannedPart], parts: list[Part]) -> None:
        """Follow up the new failures of the `parts`, which are changed, as far as there is time."""
        with self.follow_ups() as follow_up:
            for number, each in enumerate(planned):
                follow = partial(self._followed, follow_up, each, parts[number].key)
                parts[number] = _tried(parts[number], follow, FOLLOWED_MAX, is_new=True)

    def known(self, planned: Sequence[PlannedPart], parts: list[Part]) -> None:
        """Recover the crash states of known failures of the `parts`, which are changed, again."""
        with self.follow_ups() as follow_up:
            for number, each in enumerate(planned):
                follow = partial(follow_up.known_again, each)
                parts[number] = _tried(parts[number], follow, KNOWN_TRIED_MAX, is_new=False)

    def _followed(self, follow_up: FollowUp, planned: PlannedPart, key: PartKey, failure: Failure) -> Failure:
        place = key, failure.cause, failure.found
        if place not in self._done:
            self._done[place] = follow_up(planned, failure)
        again = {name: getattr(failure, name) for name in ("workloads", "known", "known_in", "earlier")}
        return self._done[place].model_copy(update=again)


def run_in_turns(
    runner: Runner,
    planned: Sequence[PlannedPart],
    in_order: Sequence[PlannedPart],
    lines: Sequence[BaselineLine],
    following: Following,
) -> tuple[tuple[Part, ...], bool]:
    """The parts with their failures followed up, and whether the user interrupted this.

    The parts have their turns in the order of `in_order`, until the time of `runner` is over. A turn after the first
    is for parts that are not done. Known failures are tried last.
    """
    turns, todo, is_first = Turns(runner.until), list(in_order), True
    parts: list[Part] = []
    while todo:
        runner.until = turns.looking_ends(is_first=is_first)
        before = sum(part.unfinished for part in parts)
        parts = list(compared_with(lines, runner.run(planned, todo)))
        if runner.interrupted or _interrupted_in(following.new, planned, parts):
            return tuple(parts), True
        got_on = is_first or sum(part.unfinished for part in parts) < before
        todo = [each for each in todo if runner.is_open(each)] if got_on and turns.has_another else []
        is_first = False
    interrupted = _interrupted_in(following.known, planned, parts)
    return tuple(parts), interrupted


def _interrupted_in(
    follow: Callable[[Sequence[PlannedPart], list[Part]], None], planned: Sequence[PlannedPart], parts: list[Part]
) -> bool:
    """Follow up failures. Whether the user interrupts it."""
    try:
        follow(planned, parts)
    except KeyboardInterrupt:
        return True
    return False


def _tried(part: Part, follow: Callable[[Failure], Failure], most: int, *, is_new: bool) -> Part:
    """The part with at most `most` violated failures followed up: the new ones if `is_new`, and else the known ones."""
    left = most
    failures: list[Failure] = []
    for failure in part.failures:
        if failure.is_new is is_new and failure.is_violated and left:
            failure, left = follow(failure), left - 1
        failures.append(failure)
    return part.model_copy(update={"failures": tuple(failures)})
