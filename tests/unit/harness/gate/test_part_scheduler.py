"""Looking and following up take turns: time that following up leaves is for looking. The parts only pretend to run."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.gate.baseline import BaselineLine, KernelRange
from postcrash.harness.gate.part_scheduler import FollowUps, run_in_turns
from postcrash.model import NO_TIME_FOR_MORE_LOOKS
from postcrash.store.gate_run import Failure, Part, Share

from .conftest import CAUSE, failure, part


@dataclass
class Gate:
    """A part of so many workloads, each of which takes a second. From workload `fails_at` on, it has a failure."""

    workloads: int
    fails_at: int | None = None
    follow_up_takes: float = 0.0
    until: float | None = 100.0
    interrupted: bool = False
    now: float = 0.0
    done: int = 0
    ends: list[float] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)
    planned: Any = field(default_factory=SimpleNamespace)

    def run(self, _planned: object, todo: Sequence[object]) -> tuple[Part, ...]:
        assert todo == [self.planned]
        while self.done < self.workloads and (self.until is None or self.now < self.until):
            self.done, self.now = self.done + 1, self.now + 1
        self.ends.append(self.now)
        has_failed = self.fails_at is not None and self.done >= self.fails_at
        return (part(*[failure(workloads=self.done)] * has_failed, not_run=self.workloads - self.done),)

    def is_open(self, _planned: object) -> bool:
        return self.done < self.workloads

    def __call__(self, _planned: object, failed: Failure) -> Failure:
        self.now += self.follow_up_takes
        self.followed.append(failed.cause)
        return failed.model_copy(update={"states": Share(failed=1, runs=2)})

    retry_known = __call__

    @contextmanager
    def follow_ups(self) -> Iterator[Any]:
        yield self


@pytest.fixture
def came_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Gate], Part]:
    def ran(gate: Gate) -> Part:
        monkeypatch.setattr(time, "monotonic", lambda: gate.now)
        runner: Any = gate
        parts, interrupted = run_in_turns(runner, [gate.planned], [gate.planned], (), FollowUps(gate.follow_ups))
        assert not interrupted
        return parts[0]

    return ran


def test_where_nothing_fails_all_of_the_time_is_for_looking(came_to: Any) -> None:
    gate = Gate(workloads=1000)
    assert (came_to(gate).not_run, gate.now) == (900, 100)


def test_what_following_up_leaves_goes_back_to_looking(came_to: Any) -> None:
    """A failure is followed up once, and what came of it stays in the part's later turns."""
    gate = Gate(workloads=1000, fails_at=5, follow_up_takes=5)
    told = came_to(gate)
    assert (gate.ends[0], told.not_run, len(gate.followed)) == (75, 905, 1)
    assert [(each.states, each.workloads) for each in told.failures] == [(Share(failed=1, runs=2), 95)]


def test_what_a_later_turn_finds_is_followed_up_too(came_to: Any) -> None:
    gate = Gate(workloads=1000, fails_at=80, follow_up_takes=1)
    assert came_to(gate).failures[0].states is not None
    assert gate.ends[:2] == [75, 94]


def test_a_part_that_is_done_has_no_further_turn(came_to: Any) -> None:
    gate = Gate(workloads=50, fails_at=1)
    assert (came_to(gate).not_run, gate.ends) == (0, [50])


def test_a_part_that_had_first_looks_only_has_a_further_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its workloads was run, and a second look at some of them takes the rest of the time."""

    class FirstLooksOnly(Gate):
        def run(self, planned: object, todo: Sequence[object]) -> tuple[Part, ...]:
            (told,) = super().run(planned, todo)
            looked = failure(verdict="undecided", message=NO_TIME_FOR_MORE_LOOKS, finding="", workloads=told.not_run)
            return (part(*[looked] * bool(told.not_run)),)

    gate = FirstLooksOnly(workloads=90)
    monkeypatch.setattr(time, "monotonic", lambda: gate.now)
    runner: Any = gate
    (told,), _ = run_in_turns(runner, [gate.planned], [gate.planned], (), FollowUps(gate.follow_ups))
    assert (told.verdict, gate.ends[0], gate.now) == ("holds", 75, 90)


def test_without_a_limit_there_is_one_turn(came_to: Any) -> None:
    gate = Gate(workloads=500, fails_at=1, until=None)
    assert (came_to(gate).not_run, gate.ends, len(gate.followed)) == (0, [500], 1)


def test_a_known_failure_keeps_what_came_of_trying_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, known = Gate(workloads=5, fails_at=1), BaselineLine(1, CAUSE, "violated", KernelRange(), "why")
    monkeypatch.setattr(time, "monotonic", lambda: gate.now)
    runner: Any = gate
    (told,), _ = run_in_turns(runner, [gate.planned], [gate.planned], (known,), FollowUps(gate.follow_ups))
    assert [(each.known, each.states) for each in told.failures] == [("why", Share(failed=1, runs=2))]


def test_a_part_that_does_not_get_on_is_not_tried_for_ever(came_to: Any) -> None:
    class Stuck(Gate):
        def run(self, _planned: object, todo: Sequence[object]) -> tuple[Part, ...]:
            self.ends.append(self.now)
            return (part(not_run=self.workloads),)

    gate = Stuck(workloads=5)
    assert (came_to(gate).not_run, len(gate.ends)) == (5, 2)
