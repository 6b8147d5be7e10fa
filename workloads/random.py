"""Long random workloads, guided by novelty: each changes one that brought something new, or is drawn afresh.

A draft is a sequence of calls and points of a grammar. Every sequence can run, since what calls need is made before
them (`prerequisites.py`); so drafts can be cut, joined and changed at any place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from postcrash.model import Workload
from postcrash.workloads.grammar import Call, Grammar, Setup
from postcrash.workloads.prerequisites import runnable_workload

CALLS_MIN, CALLS_MAX = 5, 20
"""Calls and points of a draft together."""
FRESH_SHARE = 0.5
"""The share of drafts that are drawn afresh. With 0.2, a planted chain of three operations took three times as many."""
POINT_SHARE = 0.4
"""The share of points among the elements of a draft. The others are calls."""
RECENT = 50
"""Half of the changed drafts start from one of the last drafts, this many, that brought something new."""
CHANGES_MAX = 4


@dataclass(frozen=True, slots=True)
class Draft:
    """Calls and points in their order, and what the files that they need have been through."""

    setup: Setup
    calls: tuple[Call, ...]

    def workload(self, name: str, grammar: Grammar) -> Workload:
        """The workload with the tail of the grammar, as it is run."""
        return runnable_workload(name, self.calls, grammar, self.setup).with_tail(checkpoint=grammar.checkpoint)

    def to_json(self) -> dict[str, Any]:
        """As decoded JSON."""
        return {
            "setup": self.setup,
            "calls": [[call.word, list(call.paths), call.mode, call.range] for call in self.calls],
        }

    @staticmethod
    def from_json(obj: Mapping[str, Any]) -> "Draft":
        """What `to_json` gave."""
        calls = tuple(Call(word, tuple(paths), mode, span) for word, paths, mode, span in obj["calls"])
        return Draft(obj["setup"], calls)


class Pool:
    """Drafts that brought something new, and the next ones that are made of them.

    The draft of a number depends on the seed, on the number, and on the drafts that were added before.
    """

    def __init__(self, grammar: Grammar, seed: int) -> None:
        self._grammar, self._seed = grammar, seed
        self._calls = grammar.calls()
        self._drafts: list[Draft] = []

    def __len__(self) -> int:
        return len(self._drafts)

    def add(self, draft: Draft) -> None:
        """Let the draft be one to start from."""
        self._drafts.append(draft)

    def draw(self, number: int) -> Draft:
        """A draft to try."""
        rng = Random(f"{self._seed} {number}")
        if not self._drafts or rng.random() < FRESH_SHARE:
            return self._fresh(rng)
        draft = self._picked(rng)
        setup, calls = draft.setup, list(draft.calls)
        for _ in range(rng.randint(1, CHANGES_MAX)):
            change = rng.choice((self._insert, self._insert, self._replace, self._delete, self._splice))
            change(rng, calls)
        while len(calls) < CALLS_MIN:
            self._insert(rng, calls)
        if rng.random() < 1 / 4:
            setup = rng.choice(self._grammar.setups)
        return Draft(setup, tuple(calls[:CALLS_MAX]))

    def _fresh(self, rng: Random) -> Draft:
        calls: list[Call] = []
        for _ in range(rng.randint(CALLS_MIN, CALLS_MAX)):
            calls.append(self._one(rng, calls))
        return Draft(rng.choice(self._grammar.setups), tuple(calls))

    def _picked(self, rng: Random) -> Draft:
        return rng.choice(self._drafts[-RECENT:] if rng.random() < 1 / 2 else self._drafts)

    def _one(self, rng: Random, before: list[Call]) -> Call:
        used = frozenset(path for call in before for path in call.paths)
        if used and rng.random() < POINT_SHARE:
            return rng.choice([point for point in self._grammar.points_after(used, 1, last=False) if point.word])
        return rng.choice(self._calls)

    def _insert(self, rng: Random, calls: list[Call]) -> None:
        place = rng.randint(0, len(calls))
        calls.insert(place, self._one(rng, calls[:place]))

    def _replace(self, rng: Random, calls: list[Call]) -> None:
        place = rng.randrange(len(calls))
        calls[place] = self._one(rng, calls[:place])

    def _delete(self, rng: Random, calls: list[Call]) -> None:
        if len(calls) > 1:
            del calls[rng.randrange(len(calls))]

    def _splice(self, rng: Random, calls: list[Call]) -> None:
        """The beginning of one, the end of another."""
        other = self._picked(rng).calls
        calls[rng.randint(1, len(calls)) :] = other[rng.randrange(len(other)) :]
