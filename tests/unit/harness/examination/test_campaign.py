"""A campaign whose time is over: what was not run is undecided, and nobody waits for what is under way."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from errno import EPERM
from itertools import chain
from pathlib import Path

import pytest

from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import LostAtWork, OperationFailedError
from postcrash.harness.examination import campaign
from postcrash.harness.examination.campaign import Batch, Crew, FinishedPlan, run_campaign
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.recording import CRASH_DISK
from postcrash.harness.examination.result import Examination
from postcrash.harness.guests.machine import MachineSettings
from postcrash.model import History, Observation, Verdict, Workload, parse_workload
from postcrash.model.judge import INSTANT, Opinion
from postcrash.store.kernel_build import ComparedWith
from postcrash.store.store import Store
from postcrash.targets import target_named

from .conftest import interval_report
from .fake_machine import FakeMachine, pretended_plan

NO_TIME = "it was not run: --time"
NO_CREW = Crew(MachineSettings(Path("no kernel"), Path("no root")), 1)


def test_what_was_not_run_in_time_is_undecided_and_not_kept(tmp_path: Path) -> None:
    workload = parse_workload("creat a\nfsync a\n", "w")
    plan = pretended_plan(tmp_path, target_named("ext4-current"), workload, judges=judges_named(["mounts"]))
    store = Store(tmp_path / ".postcrash")
    with TerminalProgress(1) as progress:
        (result,) = run_campaign([plan], NO_CREW, store, progress, until=time.monotonic())
    store.close()
    assert {(ruling.verdict, ruling.reason) for ruling in result.rulings.values()} == {(Verdict.UNDECIDED, NO_TIME)}
    assert not result.recording


@dataclass(eq=False)
class Busy:
    """A judge, which compares if it is asked to stop, and whose opinion takes as long as the test likes."""

    is_over: threading.Event = field(default_factory=threading.Event)
    is_busy: threading.Event = field(default_factory=threading.Event)

    name, version, depends_on = "busy", "", INSTANT

    looks_at = ("walk",)

    def check(self, history: History, observation: Observation) -> Opinion:
        self.is_busy.set()
        self.is_over.wait()
        return Opinion(Verdict.HOLDS, True, "")


class Comparing(Busy):
    """Its opinion waits for the reference."""

    recorder = CRASH_DISK
    compared = ComparedWith("kernel", "guest", None, "target")

    def nearest(self, history: History, observation: Observation) -> None: ...

    def why_no_change(self, workload: Workload, lost: LostAtWork | None) -> str:
        return ""

    def what_instead(self, workload: Workload, held: int | None, failed: OperationFailedError) -> str:
        return ""

    def stop(self) -> None:
        self.is_over.set()


def ends_while_busy(judge: Busy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Examination:
    """A campaign whose time is over as soon as the judge is busy."""
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 1}
    recovered = {"mount_errno": 0, "tree": [root], "klog": [], "fsck": None}
    machine = FakeMachine([("started", 0), ("durable",)], explored=lambda _: [interval_report(([], recovered))])
    monkeypatch.setattr(campaign, "Machine", lambda _: machine)
    for name in "boot", "close":
        monkeypatch.setattr(FakeMachine, name, lambda _: None, raising=False)
    monkeypatch.setattr(campaign, "settings_for_recorders", lambda settings, _: settings)
    monkeypatch.setattr(campaign, "is_over", lambda _: judge.is_busy.is_set())
    plan = pretended_plan(folder, target_named("ext4-current"), parse_workload("sync", "w"), judges=(judge,))
    store = Store(folder / ".postcrash")
    with TerminalProgress(1) as progress:
        (result,) = run_campaign([plan], NO_CREW, store, progress, until=1.0)
    store.close()
    return result


def test_a_campaign_ends_while_a_judge_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Busy()
    monkeypatch.setattr(campaign, "_LAST_OPINION_S", 0.1)
    assert ends_while_busy(judge, tmp_path, monkeypatch).notes == [NO_TIME]
    assert not judge.is_over.is_set()
    judge.is_over.set()


def test_a_campaign_that_ends_stops_the_run_on_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the thread would wait for the reference, and the campaign for the thread."""
    judge = Comparing()
    monkeypatch.setattr(campaign, "_LAST_OPINION_S", None)
    assert ends_while_busy(judge, tmp_path, monkeypatch).notes == [NO_TIME]
    assert judge.is_over.is_set()


def test_what_works_in_another_plan_is_not_lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses every link of `a`, and runs one of `b`: it has links, and refuses to make some."""

    def examined(todo: Iterable[Batch], *_: object) -> Iterator[FinishedPlan]:
        for number, each in chain.from_iterable(todo):
            refused = next((op for op in each.workload.operations if str(op).startswith(("link a", "symlink"))), None)
            if refused is None:
                yield FinishedPlan(number, each, tmp_path, Examination(recording="r-1"))
                continue
            error = OperationFailedError("it failed", refused.word, EPERM)
            error.variant = refused.variant
            yield FinishedPlan(number, each, tmp_path, error)

    texts = ("creat a\nlink a c\n", "creat b\nlink b c\n", "symlink x a\n")
    monkeypatch.setattr(campaign, "examine_all", examined)
    monkeypatch.setattr(campaign.ResultStore, "keep", lambda *_: None)
    target = target_named("ext4-current")
    plans = [
        pretended_plan(tmp_path, target, parse_workload(text, "w"), judges=judges_named(["mounts"])) for text in texts
    ]
    store = Store(tmp_path / ".postcrash")
    with TerminalProgress(3) as progress:
        sometimes, ran, never = run_campaign(plans, NO_CREW, store, progress, fresh=True)
    store.close()
    assert (sometimes.unsupported, sometimes.notes) == ("", ["it failed, but it works in another workload"])
    assert {ruling.verdict for ruling in sometimes.rulings.values()} == {Verdict.UNDECIDED}
    assert (ran.recording, never.unsupported) == ("r-1", "symlink")
