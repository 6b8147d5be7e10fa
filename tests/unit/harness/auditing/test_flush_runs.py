"""Which runs without flushes are made, and what they come to together. The runs themselves are pretended."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from postcrash.apps import Application
from postcrash.apps.protocol import Protocol, Step
from postcrash.apps.protocol.trace import FlushedRange
from postcrash.harness.auditing import flush_runs
from postcrash.harness.auditing.flush_runs import FlushRun, FlushRunner, numbered_flushes
from postcrash.harness.commands.programs.flush_runs_text import runs_to_json
from postcrash.harness.errors import UsageError
from postcrash.model import Verdict

from ..cells import audit_cell

CALLS = ("write", "fsync", "pwritev2", "fdatasync", "rename", "sync", "fsync")


def step(number: int, call: str) -> Step:
    durable = (FlushedRange(2, 0, None, own=False),) if call in ("fsync", "fdatasync", "pwritev2") else ()
    return Step(number, call, "a", 0, 0, durable, everything=call == "sync", said=(), known=0)


STEPS = tuple(step(number, call) for number, call in enumerate(CALLS))
PROTOCOL = Protocol(1, {}, {}, STEPS, ())
FLUSHES = [each for each in STEPS if each.durable or each.everything]


class Pretence:
    """A machine on which the run holds without a set of flushes if `holds` says so."""

    def __init__(self, holds: Callable[[set[int]], bool], names: Sequence[str] = ()) -> None:
        self.holds, self.names, self.asked = holds, names, list[tuple[int, ...]]()

    def audit(self, session: object, application: Application, *_: object) -> Any:
        numbers = application.left_out
        self.asked.append(numbers)
        if 99 in numbers:
            raise UsageError("it makes 4 flushes")
        verdict = Verdict.HOLDS if self.holds(set(numbers)) else Verdict.VIOLATED
        cell = audit_cell(verdict, application=application.name)
        return type("Audited", (), {"cell": cell, "results": [type("Result", (), {"recording": "r"})]})

    def left_out(self, *_: object) -> list[str]:
        calls = [numbered_flushes(PROTOCOL)[number].call for number in self.asked[-1]]
        return [f'{name}("a")' for name in (self.names or calls)]


def runner(monkeypatch: pytest.MonkeyPatch, pretence: Pretence) -> FlushRunner:
    monkeypatch.setattr(flush_runs, "audit", pretence.audit)
    monkeypatch.setattr(flush_runs, "_left_out", pretence.left_out)
    nothing = cast(Any, None)
    target = cast(Any, type("Named", (), {"name": "ext4"}))
    application = Application(name="app", run="true", check="true")
    return FlushRunner(nothing, application, PROTOCOL, target=target, how=nothing, guests=None, progress=nothing)


def numbers(run: FlushRun | None) -> list[int]:
    return [] if run is None else list(run.flushes)


def test_only_calls_that_do_nothing_else_have_numbers() -> None:
    assert {number: each.number for number, each in numbered_flushes(PROTOCOL).items()} == {1: 1, 2: 3, 3: 5, 4: 6}


def test_each_flush_is_left_out_alone_and_the_needless_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(lambda gone: 2 not in gone)
    runs = runner(monkeypatch, pretence).runs(FLUSHES, 20)
    assert pretence.asked == [(1,), (2,), (3,), (4,), (1, 3, 4)]
    assert [run.verdict for run in runs.alone] == [Verdict.HOLDS, Verdict.VIOLATED, Verdict.HOLDS, Verdict.HOLDS]
    assert numbers(runs.together) == [1, 3, 4]
    assert [each.call for each in runs.kept] == ["pwritev2"]
    assert runs_to_json(runs)["kept"] == [2]


def test_of_flushes_that_stand_for_each_other_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runner(monkeypatch, Pretence(lambda gone: not {1, 4} <= gone)).runs(FLUSHES, 20)
    assert all(run.verdict is Verdict.HOLDS for run in runs.alone)
    assert numbers(runs.together) == [1, 2, 3]


def test_no_two_can_go(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runner(monkeypatch, Pretence(lambda gone: len(gone) == 1)).runs(FLUSHES, 20)
    assert runs.together is None


def test_no_more_runs_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    pretence = Pretence(lambda gone: True)
    runs = runner(monkeypatch, pretence).runs(FLUSHES, 1)
    assert pretence.asked == [(1,)]
    assert [each.number for each in runs.kept] == [2, 3, 5, 6]
    assert runs.together is None


def test_a_run_that_left_out_something_else_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runner(monkeypatch, Pretence(lambda gone: True, names=["msync"])).runs(FLUSHES, 1)
    (run,) = runs.alone
    assert (run.verdict, run.doubt) == (
        Verdict.UNDECIDED,
        'its flushes come in another order there: msync("a") was left out',
    )


def test_a_run_that_cannot_be_made_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = runner(monkeypatch, Pretence(lambda gone: True))
    made.numbers[6] = 99
    run = made.without([STEPS[6]])
    assert (run.verdict, run.doubt) == (Verdict.UNDECIDED, "it makes 4 flushes")
