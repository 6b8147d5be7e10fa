"""What is left out is undecided, for every judge that should have judged it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from errno import EIO
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import BELOW
from postcrash.harness.errors import LostAtWork, OperationFailedError
from postcrash.harness.examination.crash_in_recovery import SameRecovery
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.judging import OpinionMemo
from postcrash.harness.examination.lost_guests import LOST_GUEST_JUDGE
from postcrash.harness.examination.recording import AUTO
from postcrash.harness.examination.result import Examination, Extent
from postcrash.harness.examination.state_location import Place
from postcrash.harness.guests.events import ExplorationEvent, Nondeterministic, ProgressEvent
from postcrash.model import History, Observation, Verdict, Workload, parse_workload
from postcrash.model.content import source_at
from postcrash.model.judge import INSTANT, Judge, Opinion
from postcrash.store.kernel_build import ComparedWith
from postcrash.targets import RecoveryKind, target_named

from .conftest import interval_report as interval
from .fake_machine import FakeMachine, pretended_plan

TARGET = target_named("ext4-current")
RECORDED = [("started", 0), ("durable",)]
ROOT = {"path": ".", "type": "dir", "mode": 493, "nlink": 2, "inode": 1}
FILE = {"path": "a", "type": "file", "mode": 420, "nlink": 1, "inode": 2, "size": 512, "xattrs": {}}


def observation(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"mount_errno": 0, "tree": [{"xattrs": {}, **ROOT}, *entries], "klog": [], "fsck": None}


UNMOUNTABLE = {**observation(), "mount_errno": EIO, "tree": []}


class RememberingJudge:
    """A judge that objects to nothing and remembers at which instants it was asked."""

    name = "asked"
    version = ""
    depends_on = INSTANT

    def __init__(self) -> None:
        self.instants: list[tuple[int, int]] = []

    looks_at = ()

    def check(self, history: History, observation: Observation) -> Opinion:
        self.instants.append((history.started, history.returned))
        return Opinion(Verdict.HOLDS, True, "")


def examined(
    folder: Path,
    *events: ExplorationEvent,
    judges: tuple[Judge, ...] = judges_named(["mounts"]),
    depth: int = 2,
    first_look: int | None = None,
    enough: int | None = None,
    lost: LostAtWork | None = None,
    stale: Sequence[LostAtWork] = (),
    fails: OperationFailedError | None = None,
    explored: Callable[[RecoveryKind], Iterable[ExplorationEvent]] | None = None,
) -> Examination:
    """What comes of a workload on a machine on which exploring gives these events, or those of `explored`."""
    workload, how = parse_workload("creat a\n", "w"), Exploration(depth=depth)
    plan = pretended_plan(folder, TARGET, workload, judges=judges, how=how, first_look=first_look, enough=enough)
    machine = FakeMachine(
        RECORDED,
        explored=explored or (lambda _: events),
        shown=lambda _: UNMOUNTABLE,
        fails=fails,
        lost=[lost] * 2 if lost else [],
        stale=stale,
    )
    return examine(machine, plan, folder / "run.pcr", lambda _: None)  # type: ignore[arg-type]


class OtherOutput(FakeMachine):
    """A machine on which a program says something else in each run."""

    runs = 0

    def record(self, base: Path, mount: object, workload: Workload, *others: Any, **more: Any) -> Workload:
        ran = super().record(base, mount, workload, *others, **more)
        self.runs += 1
        return replace(ran, name=f"{ran.name} {self.runs}")


@pytest.mark.parametrize(("machine", "times"), [(FakeMachine, 1), (OtherOutput, 2)])
def test_of_what_two_runs_have_shown_a_judge_is_asked_once_unless_programs_said_something_else(
    tmp_path: Path, machine: type[FakeMachine], times: int
) -> None:
    judge, memo = RememberingJudge(), OpinionMemo()
    plan = pretended_plan(tmp_path, TARGET, parse_workload("creat a\n", "w"), judges=(judge,))
    runs: Any = machine(RECORDED, explored=lambda _: (interval(([], observation())),))
    results = [examine(runs, plan, tmp_path / f"{number}.pcr", lambda _: None, memo) for number in range(2)]
    assert [result.rulings["asked"].verdict for result in results] == [Verdict.HOLDS] * 2
    assert len(judge.instants) == times


def verdicts(result: Examination) -> tuple[Verdict, Verdict]:
    return result.rulings["mounts"].verdict, result.rulings[SameRecovery.name].verdict


WITHIN = {"interval": 0, "choices": [], "observation": observation()}
WHOLE = (interval(([], observation()), within=WITHIN), interval(([], observation())))
LEFT_OUT = {"left_out": "the recoveries of the budget are spent", "covered": "1"}


def test_all_that_was_looked_at_holds(tmp_path: Path) -> None:
    assert verdicts(examined(tmp_path, *WHOLE)) == (Verdict.HOLDS, Verdict.HOLDS)


@pytest.mark.parametrize(
    "events",
    [
        (interval(([], observation()), within=WITHIN, **LEFT_OUT), WHOLE[1]),
        (WHOLE[0], interval(([], observation()), **LEFT_OUT)),
        (interval(([], observation()), ([[0, 1]], None), within=WITHIN), WHOLE[1]),
        (WHOLE[0], interval(([], observation()), ([], None))),
    ],
    ids=["crashes within left out", "states left out", "guest lost within", "guest lost"],
)
def test_what_was_not_looked_at_leaves_the_crashes_within_recovery_undecided(tmp_path: Path, events: Any) -> None:
    assert verdicts(examined(tmp_path, *events)) == (Verdict.UNDECIDED, Verdict.UNDECIDED)


def test_a_judge_is_asked_at_every_instant_of_an_interval(tmp_path: Path) -> None:
    instants = [(0, 0), (1, 0), (1, 1)]
    wire = [{"event": event, "started": s, "returned": r} for event, (s, r) in enumerate(instants)]
    within, run = RememberingJudge(), RememberingJudge()
    other = interval(([], observation({**FILE, "segments": [[0, 512, "zero"]]})))
    examined(tmp_path, interval(([], observation()), within=WITHIN, instants=wire), other, judges=(within,))
    result = examined(
        tmp_path,
        interval(([], observation()), ([[0, 1]], observation({**FILE, "segments": [[0, 512, "zero"]]})), instants=wire),
        judges=(run,),
    )
    assert within.instants == [*instants, (1, 0)]
    assert run.instants == instants * 2
    assert (result.instants, result.states, result.covered) == (3, 6, 6)


class LookingJudge(RememberingJudge):
    """A judge that also looks at the contents of `a`."""

    def check(self, history: History, observation: Observation) -> Opinion:
        source_at(observation.tree["a"], 0)
        return super().check(history, observation)


def test_an_opinion_that_looked_at_nothing_unsettled_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opinion that looked is asked for again in each crash interval, because its versions' losses depend on that."""
    versions = [[[0, 512, "zero"]], [[0, 512, "stale"]]]
    unsettled = observation({**FILE, "segments": [{"start": 0, "end": 512, "component": 0, "versions": versions}]})
    settled, looked, both = observation(), RememberingJudge(), LookingJudge()
    other = interval(([], settled), instants=[{"event": 3, "started": 1, "returned": 1}])
    examined(
        tmp_path, interval(([], settled)), interval(([], settled)), other, interval(([], settled)), judges=(looked,)
    )
    assert looked.instants == [(1, 0), (1, 1)]
    monkeypatch.setattr(Place, "losses", lambda place, interval: lambda component, version: version)
    examined(tmp_path, interval(([], unsettled)), interval(([], unsettled)), judges=(both,))
    assert both.instants == [(1, 0)] * 4


class FollowedUpError(Exception):
    """A violation would now be run again on a real machine."""


def test_recoveries_are_compared_for_each_content_that_the_first_one_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow_up(*arguments: object, **named: object) -> None:
        raise FollowedUpError

    monkeypatch.setattr("postcrash.harness.examination.confirmation.record_recovery", follow_up)
    versions = [[[0, 512, "zero"]], [[0, 512, "write:0"]]]
    choice = {"start": 0, "end": 512, "component": 3, "versions": versions}
    within = {"interval": 0, "choices": [], "observation": observation({**FILE, "segments": [choice]})}
    zeros = observation({**FILE, "segments": versions[0]})
    agreeing = interval(([[BELOW + 3, 0]], zeros), within=within)
    assert verdicts(examined(tmp_path, agreeing, WHOLE[1]))[1] is Verdict.HOLDS
    executions = [([[BELOW + 3, version]], 0) for version in (0, 1)]
    both = interval(([[BELOW + 3, 0]], zeros), within=within, executions=executions)
    with pytest.raises(FollowedUpError):
        examined(tmp_path, both, WHOLE[1])


def test_guests_lost_over_the_workload_are_a_finding_without_a_crash_state(tmp_path: Path) -> None:
    lost = LostAtWork("run", "the guest hangs", "last words", "xfs_log_force", started=1, returned=0)
    result = examined(tmp_path, lost=lost)
    assert verdicts(result) == (Verdict.UNDECIDED, Verdict.UNDECIDED)
    assert result.rulings[LOST_GUEST_JUDGE].verdict is Verdict.VIOLATED
    (finding,) = result.findings
    assert finding.message == "in 'creat a': the guest hangs"
    assert (finding.is_of_run, finding.state, finding.casualty) == (True, "", lost.casualty)
    assert [note.partition(";")[0] for note in result.notes] == [finding.message] * 2


class ComparingJudge(RememberingJudge):
    """A judge that compares with a reference, of whose lost guests it says `reason`."""

    recorder = AUTO
    compared = ComparedWith("kernel", "guest", None, "target")

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason, self.asked = reason, list[tuple[str, object]]()

    def nearest(self, history: History, observation: Observation) -> None: ...

    def why_no_change(self, workload: Workload, lost: LostAtWork | None) -> str:
        self.asked.append((workload.name, lost))
        return self.reason

    def what_instead(self, workload: Workload, held: int | None, failed: OperationFailedError) -> str:
        self.asked.append((workload.name, failed))
        return self.reason

    def stop(self) -> None: ...


def test_the_reference_is_asked_what_it_does_where_an_operation_fails(tmp_path: Path) -> None:
    failed, judge = OperationFailedError("no", "exchange", 95), ComparingJudge("kernel:old runs it")
    with pytest.raises(OperationFailedError):
        examined(tmp_path, fails=failed, judges=(judge,), depth=1)
    assert (judge.asked, failed.unlike) == ([("w", failed)], "kernel:old runs it")


@pytest.mark.parametrize("reason", ["", "kernel:old: its guest is lost too"])
def test_guests_lost_over_the_workload_are_no_finding_if_the_reference_loses_them_too(
    tmp_path: Path, reason: str
) -> None:
    lost, judge = LostAtWork("run", "the guest hangs", "", "", started=1, returned=0), ComparingJudge(reason)
    result = examined(tmp_path, lost=lost, judges=(judge,), depth=1)
    assert judge.asked == [("w", lost)]
    assert compare_verdicts(result) == ((Verdict.UNDECIDED, 0) if reason else (Verdict.VIOLATED, 1))
    assert result.rulings[LOST_GUEST_JUDGE].reason == (reason or "in 'creat a': the guest hangs")
    assert [note.partition(";")[0] for note in result.notes] == ["in 'creat a': the guest hangs"] * 2


@pytest.mark.parametrize("reason", ["", "kernel:old: a crash state could not be recovered"])
def test_guests_lost_in_recovery_are_no_finding_if_the_reference_loses_them_too(tmp_path: Path, reason: str) -> None:
    judge = ComparingJudge(reason)
    result = examined(tmp_path, interval(([], None)), judges=(judge,), depth=1)
    assert judge.asked == [("w", None)]
    assert compare_verdicts(result) == ((Verdict.UNDECIDED, 0) if reason else (Verdict.VIOLATED, 1))


def compare_verdicts(result: Examination) -> tuple[Verdict, int]:
    """The verdict on lost guests, and the number of findings. What could not be compared is undecided."""
    assert result.rulings["asked"].verdict is Verdict.UNDECIDED
    return result.rulings[LOST_GUEST_JUDGE].verdict, len(result.findings)


def test_guests_that_an_earlier_workload_lost_are_not_this_workload_s(tmp_path: Path) -> None:
    """The earlier workload had more operations. Its second try was refused, so nobody took its lost guest."""
    result = examined(tmp_path, *WHOLE, stale=[LostAtWork("run", "the guest hangs", "", "", started=9, returned=8)])
    assert (verdicts(result), result.notes, result.lost_guests) == ((Verdict.HOLDS, Verdict.HOLDS), [], [])


def test_guests_lost_over_trust_leave_all_undecided(tmp_path: Path) -> None:
    lost = LostAtWork("trust", "the guest hangs", "", "", started=0, returned=0)
    result = examined(tmp_path, *WHOLE, lost=lost)
    assert verdicts(result) == (Verdict.UNDECIDED, Verdict.UNDECIDED)
    assert result.findings == []
    assert "in the recovery of the base image: the guest hangs" in result.rulings["mounts"].reason


def test_recoveries_that_differ_count_though_the_exploration_goes_on(tmp_path: Path) -> None:
    """The first recoveries' differences are not forgotten when `enough` of them show no violation."""

    def verdict(event: ExplorationEvent) -> Verdict:
        first: list[ExplorationEvent] = [interval(([], observation()), **LEFT_OUT), event]
        second: list[ExplorationEvent] = [interval(([], observation()))]
        explorations = iter((first, second))
        examination = examined(tmp_path, depth=1, enough=1, explored=lambda _: next(explorations))
        return examination.rulings["mounts"].verdict

    assert verdict(ProgressEvent(1)) is Verdict.HOLDS
    assert verdict(Nondeterministic(0, (), observation(), None)) is Verdict.UNDECIDED


CLEAN, BROKEN = observation(), UNMOUNTABLE


@pytest.mark.parametrize(
    ("stops", "shown", "verdict", "cut_short"),
    [
        ({"first_look": 2}, [(CLEAN, LEFT_OUT)], Verdict.UNDECIDED, False),
        ({"first_look": 2}, [(CLEAN, {})], Verdict.HOLDS, False),
        ({"first_look": 2}, [(BROKEN, LEFT_OUT)], Verdict.VIOLATED, False),
        ({"first_look": 2, "enough": 4}, [(BROKEN, LEFT_OUT), (BROKEN, LEFT_OUT)], Verdict.VIOLATED, True),
        ({"first_look": 2, "enough": 4}, [(BROKEN, LEFT_OUT), (CLEAN, LEFT_OUT)], Verdict.VIOLATED, True),
        ({"first_look": 2, "enough": 4}, [(BROKEN, LEFT_OUT), (CLEAN, {})], Verdict.VIOLATED, False),
        ({"first_look": 2, "enough": 2}, [(BROKEN, LEFT_OUT)], Verdict.VIOLATED, True),
        ({"enough": 4}, [(CLEAN, LEFT_OUT), (CLEAN, {})], Verdict.HOLDS, False),
        ({"enough": 20_000}, [(BROKEN, LEFT_OUT)], Verdict.VIOLATED, False),
    ],
)
def test_an_exploration_stops_where_its_plan_says(
    tmp_path: Path,
    stops: dict[str, Any],
    shown: list[tuple[dict[str, Any], dict[str, str]]],
    verdict: Verdict,
    cut_short: bool,
) -> None:
    """A violation is never lost by looking further. The budget is 20,000 recoveries."""
    explorations = iter([[interval(([], each), **left_out)] for each, left_out in shown])
    result = examined(tmp_path, depth=1, explored=lambda _: next(explorations), **stops)
    assert (result.rulings["mounts"].verdict, result.is_cut_short) == (verdict, cut_short)
    assert len(result.findings) == (verdict is Verdict.VIOLATED)
    assert next(explorations, None) is None


def test_an_exploration_that_lost_its_guests_at_once_is_not_whole() -> None:
    result = Examination()
    result.reached([Extent(intervals=3, instants=4, states=100, covered=100), Extent()])
    assert (result.intervals, result.instants, result.states, result.covered) == (3, 4, 100, 0)
    assert not result.is_whole
