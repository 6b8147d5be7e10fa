"""The lazy exploration finds what brute force finds, on real file systems."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.guests.events import ExplorationEnd, IntervalReport
from postcrash.harness.guests.machine import Machine
from postcrash.model import Workload, WorkloadBuilder, load_workload
from postcrash.targets import Target, target_named

from .conftest import OVERWRITE, Record, executions, explored, intervals_of, judged

ROOT = Path(__file__).resolve().parents[2]
BLOCKS_MAX = 10

WORKLOADS = [
    WorkloadBuilder()
    .creat("A")
    .append("A", 4096)
    .begin()
    .creat("B")
    .write("B", 0, 4096)
    .rename("B", "A")
    .commit()
    .sync()
    .build("replace"),
    WorkloadBuilder()
    .creat("A")
    .creat("B")
    .begin()
    .append("A", 4096)
    .append("B", 100)
    .writeback("B")
    .fsync("B")
    .sync()
    .build("two-appends"),
    OVERWRITE,
]


def outcomes(interval: IntervalReport) -> dict[str, int]:
    """Distinct observations with the number of crash states that lead to each."""
    return {json.dumps(o.observation, sort_keys=True): o.states for o in interval.outcomes}


BTRFS = target_named("btrfs")
SMALL_BTRFS = replace(BTRFS, name="btrfs-small-nodes", mkfs=(*BTRFS.mkfs, "-n", "4096", "-m", "single"))
"""Tree blocks have 4 KiB and one copy, so that epochs are small enough for brute force."""


@pytest.mark.parametrize(
    "target", ["ext4-current", "ext4-journal", SMALL_BTRFS], ids=lambda target: getattr(target, "name", target)
)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_lazy_exploration_agrees_with_brute_force(
    machine: Machine, record: Record, target: str | Target, workload: Workload
) -> None:
    recorded = record(target, workload)
    lazy = intervals_of(explored(machine, recorded))
    small = [i.index for i in lazy if i.components <= BLOCKS_MAX]
    brute = {i.index: i for i in intervals_of(explored(machine, recorded, brute_force=True, intervals=small))}
    assert max(i.components for i in brute.values()) >= 5
    for interval in lazy:
        assert interval.left_out is None
        assert interval.covered == interval.states
        if interval.index in brute:
            exhaustive = brute[interval.index]
            assert exhaustive.recoveries == exhaustive.contents
            assert outcomes(interval) == outcomes(exhaustive)
            assert executions(interval) <= exhaustive.recoveries


@pytest.mark.parametrize("model", ["through", "barrier"])
def test_it_does_on_drives_with_other_rules(machine: Machine, record: Record, model: str) -> None:
    """On `barrier` states that the next crash interval has too are counted there: brute force runs them in both."""
    recorded = record("ext4-current", WORKLOADS[0], model)
    lazy = intervals_of(explored(machine, recorded))
    small = [i.index for i in lazy if i.components <= BLOCKS_MAX]
    brute = {i.index: i for i in intervals_of(explored(machine, recorded, brute_force=True, intervals=small))}
    assert max(i.components for i in brute.values()) >= 3
    assert all(each.left_out is None and each.covered == each.states for each in lazy)
    for interval in lazy:
        if interval.index in brute:
            exhaustive = brute[interval.index]
            assert exhaustive.recoveries >= exhaustive.contents
            assert outcomes(interval) == outcomes(exhaustive)
            assert all(outcome.states > 0 for outcome in interval.outcomes)


@pytest.mark.parametrize("target", ["ext4-current", "ext4-journal", "btrfs", "xfs"])
@pytest.mark.parametrize("example", ["thirty-files", "loose-blocks"])
def test_recoveries_do_not_outnumber_the_blocks_in_flight(
    machine: Machine, record: Record, target: str, example: str
) -> None:
    workload = load_workload(str(ROOT / f"examples/{example}.ops")).with_tail(checkpoint=False)
    recorded = record(target, workload)
    recover = recorded.target.recovery(walk=True, fsck=False)
    *events, explored_all = explored(machine, recorded, recover=recover, memo=False)
    intervals = intervals_of(events)
    assert all(interval.covered == interval.states for interval in intervals)
    assert isinstance(explored_all, ExplorationEnd)
    assert explored_all.recoveries <= max(interval.pieces for interval in intervals)


def test_a_spent_budget_says_so_and_counts_what_it_covered(machine: Machine, record: Record) -> None:
    recorded = record("ext4-current", WORKLOADS[0])
    whole = intervals_of(explored(machine, recorded))
    cut = intervals_of(explored(machine, recorded, budget=Budget(recoveries=5, seconds=60)))
    left_out = [interval for interval in cut if interval.left_out]
    assert left_out
    assert all(interval.left_out == "the recoveries of the budget are spent" for interval in left_out)
    assert sum(map(judged, cut)) == 5
    assert all(interval.covered < interval.states for interval in left_out)
    assert len(cut) == len(whole)


def test_a_large_interval_does_not_starve_the_others(machine: Machine, record: Record) -> None:
    recorded = record("ext4-current", WORKLOADS[0])
    whole = {interval.index: judged(interval) for interval in intervals_of(explored(machine, recorded))}
    budget = sum(whole.values()) * 2 // 3
    cut = intervals_of(explored(machine, recorded, budget=Budget(budget, 60)))
    left_out = {interval.index for interval in cut if interval.left_out}
    small = {index for index, recoveries in whole.items() if recoveries <= budget // len(whole)}
    assert left_out and small and not left_out & small
    assert sum(map(judged, cut)) == budget


def test_rechecks_with_random_unread_blocks_show_the_same(machine: Machine, record: Record) -> None:
    recorded = record("ext4-current", WORKLOADS[2])
    events = explored(machine, recorded, recheck_share=1.0, seed=7)
    for interval in intervals_of(events):
        assert interval.rechecks == judged(interval)
