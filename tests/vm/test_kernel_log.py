"""A kernel may drop a message on a crash state because it printed too many on others. This is no silence."""

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.guests.events import Outcome
from postcrash.harness.guests.machine import Machine
from postcrash.model import History, Observation, Verdict, WorkloadBuilder
from postcrash.model.judge import Judge

from .conftest import Record, RecordedWorkload, explored, intervals_of

WORKLOAD = WorkloadBuilder().begin().creat("a").write("a", 0, 12_288).fsync("a").build("w").with_tail()
HISTORY = History(WORKLOAD, 0, 0)
KERNEL_LOG, FSCK = judges_named(["kernel-log", "fsck"])
ALLOWED = ["ext2", "ext3-journal", "f2fs", "nilfs2", "vfat", "xfs"]
"""Targets for which the kernel prints something after many crashes, or at every mount, that is no finding."""


def verdict(judge: Judge, wire: object) -> Verdict:
    """What the judge says of an observation."""
    return judge.check(HISTORY, Observation.from_wire(wire)).verdict


@pytest.fixture
def lying(record: Record) -> RecordedWorkload:
    """btrfs on a drive that ignores flushes. Many crash states do not mount, and btrfs says so, 100 times in 5 s."""
    return record("btrfs", WORKLOAD, "lying")


def refused(machine: Machine, recorded: RecordedWorkload) -> tuple[int, list[Outcome]]:
    """The outcomes that do not mount, from hundreds of crash states that one guest recovers within seconds."""
    events = explored(machine, recorded, memo=False, recheck_share=0.1, budget=Budget(400, 60))
    *_, interval = intervals_of(events)
    assert interval.rechecks > 10
    return interval.index, [each for each in interval.outcomes if each.observation["mount_errno"]]


def test_lines_that_a_limit_hides_are_not_taken_for_silence(machine: Machine, lying: RecordedWorkload) -> None:
    _, outcomes = refused(machine, lying)
    silent = [each for each in outcomes if not each.observation["klog"]]
    assert silent, "no limit was reached"
    assert {verdict(KERNEL_LOG, each.observation) for each in silent} == {Verdict.UNDECIDED}
    said = [each for each in outcomes if each not in silent]
    assert {verdict(KERNEL_LOG, each.observation) for each in said} == {Verdict.VIOLATED}


def test_a_single_state_shows_its_lines_whatever_was_recovered_before(
    machine: Machine, lying: RecordedWorkload
) -> None:
    index, outcomes = refused(machine, lying)
    silent = next(each for each in outcomes if not each.observation["klog"])
    again = machine.execute(lying.source, index, silent.choices, lying.recover()).observation
    assert (again["mount_errno"], again["klog_whole"]) == (silent.observation["mount_errno"], True)
    assert verdict(KERNEL_LOG, again) is Verdict.VIOLATED


def test_fsck_says_nothing_of_a_state_that_does_not_mount(machine: Machine, lying: RecordedWorkload) -> None:
    index, outcomes = refused(machine, lying)
    recover = lying.target.recovery(walk=False, fsck=True)
    observation = machine.execute(lying.source, index, outcomes[0].choices, recover).observation
    assert (observation["mount_errno"] != 0, observation["fsck"]) == (True, None)
    assert verdict(FSCK, observation) is Verdict.UNDECIDED


@pytest.mark.parametrize("target", ALLOWED)
def test_what_it_says_of_honest_crashes_uses_up_no_limit(machine: Machine, record: Record, target: str) -> None:
    recorded = record(target, WORKLOAD)
    machine.execute(recorded.source, 0, [], recorded.recover())  # waits until used-up limits are free
    events = explored(machine, recorded, memo=False, budget=Budget(150, 60))
    shown = [each.observation for interval in intervals_of(events) for each in interval.outcomes]
    assert shown
    assert Verdict.UNDECIDED not in {verdict(KERNEL_LOG, each) for each in shown}
