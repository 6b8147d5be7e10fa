"""Which runs without flushes are made, and what they come to together. The runs themselves are pretended."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from postcrash.apps import Application
from postcrash.apps.protocol import Protocol, Step
from postcrash.apps.protocol.trace import FlushedRange
from postcrash.harness.auditing import flush_runs
from postcrash.harness.auditing.flush_runs import FlushRun, FlushRunner
from postcrash.harness.auditing.flushes import Flush
from postcrash.harness.cli.programs.flush_runs_text import runs_to_json
from postcrash.harness.errors import HarnessError, InfrastructureError
from postcrash.model import Verdict

from ..cells import audit_cell

CALLS = ("write", "fsync", "pwritev2", "fdatasync", "rename", "sync", "fsync")


def step(number: int, call: str) -> Step:
    durable = (FlushedRange(2, 0, None, own=False),) if call in ("fsync", "fdatasync", "pwritev2") else ()
    about = "" if call == "sync" else "a"
    return Step(number, call, about, 0, 0, durable, everything=call == "sync", outputs=(), known=0)


PROTOCOL = Protocol(1, {}, {}, tuple(map(step, range(len(CALLS)), CALLS)), ())
FLUSHES = [each for each in PROTOCOL.steps if each.durable or each.everything]
FAILED = Flush("fsync", frozenset({"p"}), 'fsync("p")', succeeded=False)
MADE = [
    FAILED,
    *(
        Flush(call, frozenset({"a"} if call != "sync" else ()), call)
        for call in ("fsync", "fdatasync", "sync", "fsync")
    ),
]
"""What the guest notes of it: one more call, which fails, so that the numbers differ from those of the host."""


class Pretence:
    """A machine on which the run holds without a set of flushes if `holds` says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, holds: Callable[[set[int]], bool] = lambda gone: True) -> None:
        self.holds, self.asked = holds, list[tuple[int, ...]]()
        self.error: HarnessError | None = None
        self.whole = [MADE, MADE]
        self.changed: Callable[[list[Flush]], list[Flush]] = lambda made: made
        monkeypatch.setattr(flush_runs, "audit", self.audit)
        monkeypatch.setattr(FlushRunner, "_flushes_in", lambda _, recording: recording)

    def audit(self, setup: object, application: Application, *_: object) -> Any:
        numbers = application.left_out
        self.asked.append(numbers)
        if self.error:
            raise self.error
        verdict = Verdict.HOLDS if self.holds(set(numbers)) else Verdict.VIOLATED
        made = [[replace(each, left_out=n in numbers) for n, each in enumerate(whole, 1)] for whole in self.whole]
        return self.audited(list(map(self.changed, made)), verdict)

    @staticmethod
    def audited(made: Sequence[list[Flush]], verdict: Verdict = Verdict.HOLDS) -> Any:
        results = [type("Result", (), {"recording": flushes}) for flushes in made]
        return type("Audited", (), {"cell": audit_cell(verdict), "results": results})

    def runner(self, runs_max: int = 20, supervisor: str = "") -> FlushRunner:
        nothing = cast(Any, None)
        target = cast(Any, type("Named", (), {"name": "ext4", "supervisor": supervisor}))
        application = Application(name="app", run="true", check="true")
        whole = self.audited(self.whole)
        whole.target = target
        return FlushRunner(nothing, application, PROTOCOL, whole, runs_max)


@pytest.fixture
def pretence(monkeypatch: pytest.MonkeyPatch) -> Pretence:
    return Pretence(monkeypatch)


def numbers(run: FlushRun | None) -> list[int]:
    return [] if run is None else list(run.flushes)


def test_each_flush_is_left_out_alone_and_the_needless_ones_together(pretence: Pretence) -> None:
    pretence.holds = lambda gone: 3 not in gone
    runs = pretence.runner().runs(FLUSHES)
    assert pretence.asked == [(2,), (3,), (4,), (5,), (2, 4, 5)]
    assert [run.verdict for run in runs.alone] == [Verdict.HOLDS, Verdict.VIOLATED, Verdict.HOLDS, Verdict.HOLDS]
    assert numbers(runs.together) == [2, 4, 5]
    assert [each.call for each in runs.kept] == ["pwritev2"]
    assert runs_to_json(runs)["kept"] == [2]


def test_of_flushes_that_stand_for_each_other_one_stays(pretence: Pretence) -> None:
    pretence.holds = lambda gone: not {2, 5} <= gone
    runs = pretence.runner().runs(FLUSHES)
    assert all(run.verdict is Verdict.HOLDS for run in runs.alone)
    assert numbers(runs.together) == [2, 3, 4]


def test_the_first_one_may_stay(pretence: Pretence) -> None:
    pretence.holds = lambda gone: len(gone) == 1 or 2 not in gone
    assert numbers(pretence.runner().runs(FLUSHES).together) == [3, 4, 5]


def test_no_two_can_go(pretence: Pretence) -> None:
    pretence.holds = lambda gone: len(gone) == 1
    assert pretence.runner().runs(FLUSHES).together is None
    assert len(pretence.asked) == 4 + 1 + 6


def test_no_more_runs_than_allowed(pretence: Pretence) -> None:
    runs = pretence.runner(runs_max=1).runs(FLUSHES)
    assert pretence.asked == [(2,)]
    assert [each.number for each in runs.kept] == [2, 3, 5, 6]
    assert runs.together is None


def test_a_run_whose_flushes_are_others_says_nothing(pretence: Pretence) -> None:
    pretence.changed = lambda made: [*made[:-1], replace(made[-1], names=frozenset({"b"}), text="fsync b")]
    (run,) = pretence.runner(runs_max=1).runs(FLUSHES).alone
    assert (run.verdict, run.doubt) == (
        Verdict.UNDECIDED,
        "without it, its flushes are not those of the run with it: flush 5 is fsync b, and not fsync",
    )


def test_a_run_that_left_out_another_flush_says_nothing(pretence: Pretence) -> None:
    pretence.changed = lambda made: [replace(each, left_out=number == 4) for number, each in enumerate(made)]
    (run,) = pretence.runner(runs_max=1).runs(FLUSHES).alone
    assert (run.verdict, run.doubt) == (Verdict.UNDECIDED, "left out were the flushes [5]")


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        ([[*MADE, MADE[3]]], "its flushes there are not those of the traced run: it makes 5 flushes, and not 4"),
        ([[]], "its flushes there are not those of the traced run: it makes 0 flushes, and not 4"),
        ([MADE, MADE[1:]], "its flushes are not the same on both disks"),
        ([], "its flushes are not the same on both disks"),
    ],
)
def test_where_the_whole_run_flushes_otherwise_there_are_no_runs(
    pretence: Pretence, whole: list[list[Flush]], why: str
) -> None:
    pretence.whole = whole
    runs = pretence.runner().runs(FLUSHES)
    assert (runs.doubt, runs.alone, pretence.asked) == (why, (), [])


def test_a_supervisor_answers_flushes_itself(pretence: Pretence) -> None:
    runs = pretence.runner(supervisor="xsync").runs(FLUSHES)
    assert runs.doubt == "xsync answers flushes itself, so that none can be left out"
    assert pretence.asked == []


def test_a_run_that_cannot_be_made_says_nothing(pretence: Pretence) -> None:
    pretence.error = InfrastructureError("the guest ended")
    runs = pretence.runner(runs_max=2).runs(FLUSHES)
    assert [(run.verdict, run.doubt) for run in runs.alone] == [(Verdict.UNDECIDED, "the guest ended")] * 2
