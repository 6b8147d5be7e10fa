"""Has judges check outcomes. Each opinion is made only once."""

import hashlib
import json
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from postcrash.harness.examination.result import Ruling, Witness
from postcrash.harness.examination.state_location import Place
from postcrash.model import History, Observation, ObservationError, Verdict, every_answer
from postcrash.model.choices import Cost
from postcrash.model.judge import Judge, Opinion

ANSWERS_MAX = 20_000
"""The most opinions of one judge on one outcome."""
NOT_ALL_CHECKED = (
    "contents are open in a crash state, and after an objection not all ways to settle them were asked about"
)
OPINIONS_MAX = 50_000
"""The most opinions that are remembered at a time."""


class OpinionMemo:
    """The opinions of judges on the outcomes of one workload. Its runs on different disks share many outcomes."""

    def __init__(self) -> None:
        self._observations: dict[bytes, Any] = {}
        self._known: dict[tuple[int, ...], _Known] = {}
        """The key: the ids of judge and report, and the fields of the instant on which the opinion depends."""
        self._last_read: tuple[object, Observation] | None = None

    def shared(self, observation: object) -> object:
        """The first observation that equals this one. Thousands of crash intervals have few different observations."""
        digest = hashlib.sha256(json.dumps(observation).encode()).digest()
        return self._observations.setdefault(digest, observation)

    def answers(
        self, judge: Judge, history: History, wire: object, losses: Cost
    ) -> Iterable[tuple[Opinion, dict[int, int]]]:
        """See `every_answer`. If the judge reads no undecided contents, its opinion is the same in each interval."""
        key = (id(judge), id(wire), *(getattr(history, field) for field in judge.depends_on))
        if key in self._known:
            return [(self._known[key].opinion, {})]
        observation = self._read(wire)
        answers = every_answer(lambda: judge.check(history, observation), losses)
        opinion, versions = next(answers)
        if not versions:
            if len(self._known) == OPINIONS_MAX:
                self._known.clear()
            self._known[key] = _Known(judge, wire, opinion)
        return chain([(opinion, versions)], answers)

    def _read(self, observation: object) -> Observation:
        """The observation in a report. A report is parsed once for all consecutive judges and instants."""
        if self._last_read is None or self._last_read[0] is not observation:
            self._last_read = (observation, Observation.from_wire(observation))
        return self._last_read[1]


class Opinions:
    """Has judges check outcomes whose opinions are not in `memo` yet.

    If undecided contents matter to a judge, at most `messages_max` violations by one outcome are collected. With
    `notes_skipped`, the ruling notes where others may have been skipped.
    """

    def __init__(self, memo: OpinionMemo, messages_max: int = 1, *, notes_skipped: bool = False) -> None:
        self._memo, self._messages_max, self._notes_skipped = memo, messages_max, notes_skipped

    def shared(self, observation: object) -> object:
        """See `OpinionMemo`."""
        return self._memo.shared(observation)

    def judge(self, judge: Judge, history: History, witness: Witness, ruling: Ruling, place: Place | None) -> None:
        """Check the outcome, once for each way in which undecided contents matter to the judge.

        The ways with the fewest losses come first, so no later violation loses less than the first one with the same
        words. A crash within recovery has no `place`. Its losses are found out when it is followed up.
        """
        fewest: dict[str, int] = {}
        losses = (lambda _, version: int(version > 0)) if place is None else place.losses(witness.interval)
        try:
            answers = self._memo.answers(judge, history, witness.observation, losses)
        except ObservationError as error:
            ruling.undecided(f"the agent's report is broken: {error}")
            return
        for number, (opinion, versions) in enumerate(answers):
            if number == ANSWERS_MAX:
                ruling.undecided(f"contents matter in more than {ANSWERS_MAX} ways to {judge.name}")
                return
            ruling.take(opinion)
            if opinion.is_last:
                return
            if opinion.verdict is Verdict.VIOLATED:
                found = witness.settled(versions, None if place is None else place.intervals[witness.interval])
                lost = len(found.lost)
                is_simplest = lost <= fewest.setdefault(opinion.message, lost)
                is_enough = len(fewest) >= self._messages_max + is_simplest
                if is_enough and lost > min(fewest.values()):
                    if self._notes_skipped:
                        ruling.leave_open(NOT_ALL_CHECKED)
                    return
                if is_simplest:
                    ruling.violated(opinion.message, found)


class _Known(NamedTuple):
    """An opinion with its judge and report. They stay alive here, so that no other object can get their ids."""

    judge: Judge
    report: object
    opinion: Opinion
