"""Recoveries that are remembered instead of run give the same outcomes and crash states, on real file systems."""

import json
from collections import Counter

import pytest

from postcrash.harness.guests.events import IntervalReport
from postcrash.harness.guests.machine import Machine
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.workloads import GRAMMARS, WorkloadSpace

from .conftest import Record, explored, intervals_of, overwriting

TARGETS = ("ext4-current", "ext4-journal", "btrfs", "xfs")
WORKLOADS = 5
OVERWRITE = overwriting().write("A", 8192, 4096).fsync("A").write("A", 4096, 4096).sync().build("overwrite")


def outcomes(interval: IntervalReport) -> Counter[str]:
    """Crash states by observation."""
    shown = Counter[str]()
    for outcome in interval.outcomes:
        shown[json.dumps(outcome.observation, sort_keys=True)] += outcome.states
    return shown


def run(interval: IntervalReport) -> int:
    """How many executions of an interval, run or remembered, are counted in outcomes."""
    assert len(interval.executions) == sum(outcome.executions for outcome in interval.outcomes)
    return len(interval.executions)


@pytest.mark.parametrize("target", TARGETS)
def test_a_memo_changes_nothing_but_how_many_recoveries_are_run(machine: Machine, record: Record, target: str) -> None:
    selection = Selection(WorkloadSpace(GRAMMARS["ace"], 2), sample=WORKLOADS, seed=3)
    workloads = [selection.space.whole(number) for number in selection.numbers()]
    remembered = 0
    for workload in [OVERWRITE, *workloads]:
        recorded = record(target, workload)
        for recover in (recorded.recover(), recorded.target.recovery(walk=True, fsck=False)):
            plain = intervals_of(explored(machine, recorded, recover=recover, memo=False, recheck_share=0.0))
            known = intervals_of(explored(machine, recorded, recover=recover, recheck_share=0.1))
            for without, memo in zip(plain, known, strict=True):
                assert (memo.index, memo.states) == (without.index, without.states)
                assert memo.covered == without.covered == without.states
                assert outcomes(memo) == outcomes(without)
                warm_ups = memo.recoveries + memo.remembered - run(memo)
                assert warm_ups in (0, 1) and without.remembered == 0
                remembered += memo.remembered
    assert remembered > WORKLOADS
