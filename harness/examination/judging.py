"""What judges say of outcomes, each opinion made once."""

import hashlib
import json
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from postcrash.harness.examination.judges import Judge, Opinion
from postcrash.harness.examination.place import Place
from postcrash.harness.examination.result import Ruling, Witness
from postcrash.model import History, Observation, ObservationError, Verdict, every_answer

ANSWERS_MAX = 20_000
"""Of one judge about one outcome."""
OPINIONS_MAX = 50_000
"""So many are remembered at a time."""


class Opinions:
    """Asks judges about outcomes, and remembers what they said."""

    def __init__(self) -> None:
        self._observations: dict[bytes, Any] = {}
        self._known: dict[tuple[int, ...], _Known] = {}
        """By the ids of judge and report, and what of the instant the judge's opinion depends on."""
        self._last_read: tuple[object, Observation] | None = None

    def shared(self, observation: object) -> object:
        """The equal observation that was seen first: thousands of crash intervals have few different ones."""
        digest = hashlib.sha256(json.dumps(observation).encode()).digest()
        return self._observations.setdefault(digest, observation)

    def judge(self, judge: Judge, history: History, witness: Witness, ruling: Ruling, place: Place | None) -> None:
        """Ask the judge about the outcome, once for each way in which contents that are not settled matter to it.

        Ways come with fewest losses first, so that nothing behind the first violation loses less. The losses of a crash
        within recovery, which has no `place`, are found out when it is followed up.
        """
        fewest: int | None = None
        try:
            answers = self._answers(judge, history, witness, place)
        except ObservationError as error:
            ruling.undecided(f"the agent's report is broken: {error}")
            return
        for number, (opinion, versions) in enumerate(answers):
            if number == ANSWERS_MAX:
                ruling.undecided(f"contents matter in more than {ANSWERS_MAX} ways to {judge.name}")
                return
            ruling.take(opinion)
            if opinion.verdict is Verdict.VIOLATED:
                found = witness.settled(versions, None if place is None else place.intervals[witness.interval])
                fewest = len(found.lost) if fewest is None else fewest
                if len(found.lost) > fewest:
                    return
                ruling.violated(opinion.message, found)

    def _answers(
        self, judge: Judge, history: History, witness: Witness, place: Place | None
    ) -> Iterable[tuple[Opinion, dict[int, int]]]:
        """See `every_answer`. If all that is looked at is settled, the opinion is the same in each crash interval."""
        wire = witness.observation
        key = (id(judge), id(wire), *(getattr(history, field) for field in judge.depends_on))
        if key in self._known:
            return [(self._known[key].opinion, {})]
        observation = self._read(wire)
        losses = (lambda _, version: int(version > 0)) if place is None else place.losses(witness.interval)
        answers = every_answer(lambda: judge.opinion(history, observation), losses)
        opinion, versions = next(answers)
        if not versions:
            if len(self._known) == OPINIONS_MAX:
                self._known.clear()
            self._known[key] = _Known(judge, wire, opinion)
        return chain([(opinion, versions)], answers)

    def _read(self, observation: object) -> Observation:
        """The observation that a report stands for. It is read once, and not again for the next judge and instant."""
        if self._last_read is None or self._last_read[0] is not observation:
            self._last_read = (observation, Observation.from_wire(observation))
        return self._last_read[1]


class _Known(NamedTuple):
    """An opinion, with what it is of: so nothing else can have their ids while it is remembered."""

    judge: Judge
    report: object
    opinion: Opinion
