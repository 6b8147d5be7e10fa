"""Crashes within recovery: all of them are found, and a recovery that is not idempotent is found."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.examination.crash_in_recovery import (
    FirstCrash,
    SameRecovery,
    judge_again,
    record_recovery,
    source_of,
)
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import instants_of
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.events import ExplorationEvent, IntervalReport, Outcome
from postcrash.harness.guests.machine import Machine
from postcrash.model import History, Observation, Verdict, Workload, WorkloadBuilder
from postcrash.reports.explanation import explanation
from postcrash.store.store import Store
from postcrash.targets import Target, base_image, target_named

from .command import ROOT, one_line, postcrash
from .conftest import Record, RecordedWorkload, explored, intervals_of

REPLACE = (
    WorkloadBuilder()
    .creat("A")
    .append("A", 4096)
    .begin()
    .creat("B")
    .append("B", 4096)
    .fsync("B")
    .rename("B", "A")
    .sync()
    .build("replace")
)
APPEND = WorkloadBuilder().creat("A").begin().append("A", 4096).fsync("A").build("append")
BTRFS = target_named("btrfs")
SMALL_BTRFS = replace(BTRFS, name="btrfs-small-nodes", mkfs=(*BTRFS.mkfs, "-n", "4096", "-m", "single"))
EXT4 = target_named("ext4-current")
HASTY_EXT4 = replace(EXT4, name="ext4-hasty", recover_options=f"{EXT4.recover_options},barrier=0")
"""It flushes in the run, but not while it recovers: the journal may be empty before its blocks are in place."""


def within(events: list[ExplorationEvent]) -> list[IntervalReport]:
    """The reports of crashes within recovery."""
    return [interval for interval in intervals_of(events) if interval.within is not None]


def shown(outcome: Outcome) -> str:
    return json.dumps(outcome.observation, sort_keys=True)


def totals(intervals: list[IntervalReport]) -> dict[tuple[int, int], Counter[str]]:
    """Crash states by outcome, for each crash interval of the run and of recoveries of its states."""
    counts: dict[tuple[int, int], Counter[str]] = {}
    for interval in intervals:
        assert interval.within is not None
        count = counts.setdefault((interval.within.interval, interval.index), Counter())
        count.update({shown(outcome): outcome.states for outcome in interval.outcomes})
    return counts


@pytest.mark.parametrize("target", ["ext4-current", "ext4-journal"])
def test_the_lazy_walk_agrees_with_brute_force(machine: Machine, record: Record, target: str) -> None:
    recorded = record(target, REPLACE)
    small = [i.index for i in intervals_of(explored(machine, recorded)) if i.components <= 5]
    budget = Budget(60_000, 300)
    lazy, brute = (
        within(explored(machine, recorded, depth=2, intervals=small, budget=budget, brute_force=brute_force))
        for brute_force in (False, True)
    )
    assert all(interval.covered == interval.states for interval in (*lazy, *brute))
    assert totals(lazy) == totals(brute)
    assert sum(interval.recoveries for interval in lazy) < sum(interval.recoveries for interval in brute)


def test_the_crashes_are_those_of_the_recovery_of_that_disk(machine: Machine, record: Record, tmp_path: Path) -> None:
    """The disk is written to a file and recovered, and this recovery is explored like any other run."""
    recorded = record("ext4-journal", REPLACE)
    reports = within(explored(machine, recorded, depth=2, brute_force=True, intervals=[0, 1]))
    by_state: dict[str, list[IntervalReport]] = {}
    for report in reports:
        assert report.within is not None
        by_state.setdefault(json.dumps([report.within.interval, report.within.choices]), []).append(report)
    assert len(by_state) >= 4
    for number, reports in enumerate(list(by_state.values())[:6]):
        crashed = FirstCrash.of(reports[0])
        assert crashed is not None
        history = instants_of(reports[0], recorded.workload)[-1]
        out = tmp_path / f"{number}.pcr"
        source = record_recovery(
            machine, recorded.source, crashed=crashed, choices=(), out=out, recover=recorded.recover(), history=history
        )
        again = intervals_of(explored(machine, RecordedWorkload(recorded.target, recorded.workload, source)))
        assert [r.pieces for r in again] == [r.pieces for r in reports]
        assert {(h.started, h.returned) for r in again for h in instants_of(r, recorded.workload)} == {
            (history.started, history.returned)
        }
        for first, second in zip(reports, again, strict=True):
            assert {shown(outcome) for outcome in first.outcomes} == {shown(o) for o in second.outcomes}


def plan_for(target: Target, workload: Workload = REPLACE) -> Plan:
    return Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel="any",
        guest="any",
        workload=workload,
        judges=judges_named(["durability", "mounts"]),
        recoveries=(target.recovery(walk=True, fsck=False),),
        how=Exploration(budget=Budget(60_000, 300), depth=2),
        explainer=explanation,
    )


@pytest.mark.parametrize("target", [EXT4, SMALL_BTRFS], ids=lambda target: target.name)
def test_recovery_is_idempotent(machine: Machine, tmp_path: Path, target: Target) -> None:
    result = examine(machine, plan_for(target), tmp_path / "run.pcr", lambda _: None)
    verdicts = {name: ruling.verdict for name, ruling in result.rulings.items()}
    assert verdicts == dict.fromkeys(("durability", "mounts", SameRecovery.name), Verdict.HOLDS)
    assert result.rulings[SameRecovery.name].relevant
    assert result.covered_within == result.states_within > result.states


def test_a_recovery_that_is_not_idempotent_is_found(machine: Machine, tmp_path: Path) -> None:
    plan = plan_for(HASTY_EXT4)
    shallow = examine(machine, replace(plan, how=replace(plan.how, depth=1)), tmp_path / "shallow.pcr", lambda _: None)
    assert shallow.verdict is Verdict.HOLDS
    result = examine(machine, plan, tmp_path / "run.pcr", lambda _: None)
    found = {finding.checker: finding for finding in result.findings}
    assert set(found) >= {SameRecovery.name, "durability"}
    assert found["durability"].message.startswith("after a crash within recovery: ")
    for finding in found.values():
        assert finding.base.startswith(f"{result.recording}/")
        assert finding.recording in result.recoveries_kept
        assert finding.explanation is not None
        assert finding.explanation.lost


def test_a_finding_within_recovery_replays_from_the_store(machine: Machine, tmp_path: Path) -> None:
    plan = plan_for(HASTY_EXT4, APPEND)
    store = Store(tmp_path / "store")
    recording = store.scratch()
    result = examine(machine, plan, recording, lambda _: None)
    store.keep_base(plan.base.path, plan.base.id)
    for id, path in {result.recording: recording, **result.recoveries_kept}.items():
        store.adopt_recording(path, id)
    for finding in result.findings:
        with source_of(store, finding) as (source, under):
            assert under is not None
            is_same = finding.checker == SameRecovery.name
            judge = judge_again(machine, under, finding) if is_same else judges_named([finding.checker])[0]
            again = machine.execute(source, finding.interval, finding.choices, finding.recovery)
            history = History(plan.workload, finding.started, finding.returned)
            opinion = judge.check(history, Observation.from_wire(again.observation))
        assert opinion.verdict is Verdict.VIOLATED
        assert finding.message.endswith(opinion.message)


def test_judges_that_never_see_a_second_crash_are_refused_alone_and_named_among_others(tmp_path: Path) -> None:
    asked = ("check", str(ROOT / "examples/create-fsync.ops"), "--target", "ext4-current", "--depth", "2")
    assert "no judge of usable looks at trees: add one" in one_line(postcrash(tmp_path, *asked, "--judge", "usable"), 4)
    both = postcrash(tmp_path, *asked, "--judge", "usable,mounts", "--budget", "40").stdout
    assert "within their recovery (for walk only)" in " ".join(both.split())


def test_check_goes_into_recovery_when_asked(tmp_path: Path) -> None:
    (tmp_path / "append.ops").write_text(APPEND.to_text())
    arguments = ("check", "append.ops", "--target", "ext4-current", "--judge", "durability", "--depth", "2")
    done = postcrash(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert "within their recovery" in " ".join(done.stdout.split())
    assert "✓ same-recovery" in done.stdout
