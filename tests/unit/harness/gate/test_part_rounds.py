"""How the parts of a gate share its time. The parts only pretend to run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.gate import part_scheduler as module
from postcrash.harness.gate.baseline import BaselineLine, KernelRange
from postcrash.harness.gate.part_scheduler import Runner
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.model import NO_TIME_FOR_CHECKS, Verdict, parse_workload
from postcrash.store.gate_run import NO_TIME, TIME_SPENT, Failure, Part
from postcrash.targets import target_named

from .conftest import CAUSE, OTHER, failure, part


class Pretence:
    """Each part has so many workloads, and each of these takes a second of a clock that stands still otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **workloads: int) -> None:
        self.left, self.now, self.turns, self.told = dict(workloads), 0.0, list[str](), list[str]()
        self.finished, self.interrupt_in = list[str](), ""
        monkeypatch.setattr(module, "run_part", self.run_part)
        monkeypatch.setattr(module, "not_begun", lambda planned: self.part(planned.key[0]))
        monkeypatch.setattr(module, "cause_of_finding", lambda planned, finding: finding.cause)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.planned: list[Any] = [SimpleNamespace(key=self.part(name).key, application=None) for name in self.left]

    def part(self, name: str) -> Part:
        return part(name=name, not_run=self.left[name])

    def run_part(
        self, planned: Any, session: object, guests: object, progress: Any, until: float | None
    ) -> tuple[Part, bool]:
        name = planned.key[0]
        self.turns.append(name)
        for cause in (CAUSE, OTHER):
            progress.found(SimpleNamespace(cause=cause, checker="P5", id="f-" + "0" * 16))
        while self.left[name] and (until is None or self.now < until):
            self.left[name] -= 1
            self.now += 1
        return self.part(name), name == self.interrupt_in

    @contextmanager
    def progress(self, planned: Any) -> Iterator[Any]:
        yield SimpleNamespace(found=lambda finding: self.told.append(f"{planned.key[0]} {finding.cause}"))

    def runner(self, until: float | None, *known: BaselineLine) -> Runner:
        finished = lambda part: self.finished.append(part.name)  # noqa: E731
        return Runner(None, None, until, known, self.progress, finished)  # type: ignore[arg-type]


def test_without_a_limit_each_part_runs_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=3, b=500)
    parts = pretence.runner(None).run(pretence.planned, pretence.planned)
    assert (pretence.turns, [each.not_run for each in parts], pretence.finished) == (["a", "b"], [0, 0], ["a", "b"])


def test_time_is_shared_out_and_what_is_left_goes_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 60 s: a has 20 s and takes 2, b has 29 of the rest, c has the last 29 and takes 5; b goes on and ends."""
    pretence = Pretence(monkeypatch, a=2, b=40, c=5)
    parts = pretence.runner(60).run(pretence.planned, pretence.planned)
    assert pretence.turns == ["a", "b", "c", "b"]
    assert [each.not_run for each in parts] == [0, 0, 0]
    assert pretence.finished == ["a", "c", "b"]


def test_what_does_not_fit_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=100, b=100)
    parts = pretence.runner(50).run(pretence.planned, pretence.planned)
    assert [each.not_run for each in parts] == [75, 75]
    assert pretence.now == 50
    assert pretence.finished == []


def test_parts_that_there_was_no_time_to_begin_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=1, b=1)
    parts = pretence.runner(0).run(pretence.planned, pretence.planned)
    assert [(each.name, each.not_run) for each in parts] == [("a", 1), ("b", 1)]
    assert pretence.turns == []


def test_parts_are_run_in_the_order_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=1, b=1, c=1)
    parts = pretence.runner(None).run(pretence.planned, [pretence.planned[number] for number in (2, 0, 1)])
    assert pretence.turns == ["c", "a", "b"]
    assert [each.name for each in parts] == ["a", "b", "c"]


def test_an_interrupt_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=1, b=1, c=1)
    pretence.interrupt_in = "b"
    runner = pretence.runner(None)
    parts = runner.run(pretence.planned, pretence.planned)
    assert (runner.interrupted, pretence.turns) == (True, ["a", "b"])
    assert [each.not_run for each in parts] == [0, 0, 1]


def test_a_part_that_does_not_get_on_is_not_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=3)
    monkeypatch.setattr(module, "run_part", lambda *asked, until: (pretence.part("a"), False))
    assert pretence.runner(60).run(pretence.planned, pretence.planned)[0].not_run == 3


def test_only_new_failures_are_announced_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=40, b=2)
    known = BaselineLine(1, CAUSE, "violated", KernelRange(), "why")
    pretence.runner(60, known).run(pretence.planned, pretence.planned)
    assert pretence.turns == ["a", "b", "a"]
    assert pretence.told == [f"a {OTHER}", f"b {OTHER}"]
    assert failure().cause == CAUSE


def shown_in_turn(monkeypatch: pytest.MonkeyPatch, *turns: tuple[Failure, ...]) -> Part:
    """What a part comes to that has these failures in its first turn, and so on, and is open but for the last one."""
    pretence = Pretence(monkeypatch, a=len(turns))
    todo = list(turns)

    def run_part(*asked: Any, until: float | None) -> tuple[Part, bool]:
        pretence.left["a"] -= 1
        return part(*todo.pop(0), name="a", not_run=pretence.left["a"]), False

    monkeypatch.setattr(module, "run_part", run_part)
    (done,) = pretence.runner(60).run(pretence.planned, pretence.planned)
    assert not todo
    return done


def test_what_an_earlier_turn_has_shown_stays_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application is run anew in each turn, and need not show the same again."""
    done = shown_in_turn(monkeypatch, (failure(),), (), (failure(cause=OTHER, verdict="undecided"),))
    assert (done.verdict, done.not_run) == ("violated", 0)
    assert [(each.cause, each.verdict, each.earlier) for each in done.failures] == [
        (CAUSE, "violated", True),
        (OTHER, "undecided", False),
    ]


def test_what_the_last_turn_shows_again_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done = shown_in_turn(monkeypatch, (failure(workloads=1),), (failure(workloads=2),))
    assert done.failures == (failure(workloads=2),)


def test_what_an_earlier_turn_could_not_decide_may_be_decided_later(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_in_turn(monkeypatch, (failure(verdict="undecided"),), ()).failures == ()


def application(budget: str) -> Any:
    """The planned part of an application, of which only what the budget and a failure's cause need is there."""
    workloads = ListSelection((parse_workload("sync", "app"),), (None,))
    about: dict[str, Any] = {"how": Exploration(budget=Budget.parse(budget)), "workloads": workloads}
    return PlannedPart(
        name="a",
        kind="application",
        target=target_named("ext4-current"),
        kernel=None,
        kernel_name="default",
        expected=SimpleNamespace(name="practice"),  # type: ignore[arg-type]
        hold=(),
        kinds=frozenset(),
        application=SimpleNamespace(name="app"),  # type: ignore[arg-type]
        **about,
    )


@pytest.mark.parametrize("reason", [f"crash interval N: N of N crash states; {TIME_SPENT}", NO_TIME_FOR_CHECKS])
@pytest.mark.parametrize("budget", ["200", "200,99s", "200,3s"])
def test_an_application_whose_budget_was_cut_had_no_time(
    monkeypatch: pytest.MonkeyPatch, reason: str, budget: str
) -> None:
    """The gate has ten seconds. A budget that is smaller is the user's own."""
    pretence = Pretence(monkeypatch, a=0)
    asked: list[Any] = []
    other = failure(cause=OTHER, verdict="undecided", message="a guest was lost", finding="")

    def run_part(planned: Any, *_: Any, until: float | None) -> tuple[Part, bool]:
        asked.append(planned.how.budget.seconds)
        return part(failure(verdict="undecided", message=reason, finding=""), other, name="a"), False

    monkeypatch.setattr(module, "run_part", run_part)
    monkeypatch.setattr(module, "not_begun", lambda planned: part(name="a", not_run=1))
    planned = application(budget)
    (done,) = pretence.runner(10).run([planned], [planned])
    is_cut = budget != "200,3s"
    assert asked == ([8, 8] if is_cut else [3])
    assert done.not_run == (1 if is_cut else 0)
    assert {each.message for each in done.failures} == {other.message, NO_TIME if is_cut else reason}
    assert [each.is_lack_of_time for each in done.failures if each.cause != OTHER] == [True]


def test_an_application_that_was_cut_short_begins_anew_in_the_time_that_others_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It needs 100 of the gate's 200 seconds. Its first share is half of them, of which it may explore for 80 s."""
    pretence = Pretence(monkeypatch, a=1, b=5)
    shares: list[float] = []

    def run_part(planned: Any, *asked: Any, until: float | None) -> tuple[Part, bool]:
        if planned.key[0] == "b":
            return pretence.run_part(planned, None, None, asked[-1], until)
        shares.append(planned.how.budget.seconds)
        pretence.now += min(shares[-1], 100)
        late = failure(verdict="undecided", message=f"crash interval N: {TIME_SPENT}", finding="")
        return part(*[late] * (shares[-1] < 100), name="a", workloads=1), False

    monkeypatch.setattr(module, "run_part", run_part)
    monkeypatch.setattr(module, "not_begun", lambda planned: part(name=planned.key[0], not_run=1))
    planned = [application("20000,600s"), pretence.planned[1]]
    done, _ = pretence.runner(200).run(planned, planned)
    assert shares == [80, 92]
    assert (done.not_run, [each.message for each in done.failures]) == (1, [NO_TIME])
    shares.clear()
    pretence.now, pretence.left["b"] = 0, 5
    done, _ = pretence.runner(240).run(planned, planned)
    assert shares == [96, 111.2]
    assert (done.not_run, done.workloads, done.failures) == (0, 1, ())


def test_a_part_that_cannot_be_run_does_not_keep_the_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as where two guests are lost one after the other. What the other parts came to is not lost."""
    pretence = Pretence(monkeypatch, a=1, b=2)

    def run_part(planned: Any, *asked: Any, until: float | None) -> tuple[Part, bool]:
        if planned.key[0] == "a":
            pretence.turns.append("a")
            raise InfrastructureError("two guests were lost")
        return pretence.run_part(planned, None, None, asked[-1], until)

    monkeypatch.setattr(module, "run_part", run_part)
    monkeypatch.setattr(module, "not_begun", lambda planned, why="": part(name=planned.key[0], not_run=1, notes=(why,)))
    broken, other = pretence.runner(None).run(pretence.planned, pretence.planned)
    assert (broken.notes, broken.gate_verdict) == (("it could not be run: two guests were lost",), Verdict.UNDECIDED)
    assert (other.not_run, pretence.turns, pretence.finished) == (0, ["a", "b", "a"], ["b"])


def test_a_later_turn_that_cannot_be_run_leaves_what_there_was(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(monkeypatch, a=40, b=2)

    def run_part(planned: Any, *asked: Any, until: float | None) -> tuple[Part, bool]:
        if pretence.turns == ["a", "b"]:
            raise InfrastructureError("two guests were lost")
        done, _ = pretence.run_part(planned, None, None, asked[-1], until)
        return done.model_copy(update={"workloads": 7, "seconds": 3.0}), False

    monkeypatch.setattr(module, "run_part", run_part)
    broken, _ = pretence.runner(60).run(pretence.planned, pretence.planned)
    assert (broken.workloads, broken.not_run, broken.seconds) == (7, 10, 3.0)
    assert broken.notes == ("it could not be run: two guests were lost",)
