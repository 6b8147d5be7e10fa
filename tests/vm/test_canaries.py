"""Planted faults that must be found, by real kernels on real file systems."""

from itertools import product

import pytest

from postcrash.checkers import CHECKERS
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.result import instants_of
from postcrash.harness.guests.machine import Machine
from postcrash.model import Observation, Verdict, WorkloadBuilder
from postcrash.model.judge import Judge

from .conftest import Record, RecordedWorkload, explored, intervals_of

FSYNCED = WorkloadBuilder().creat("A").begin().write("A", 0, 8192).fsync("A").creat("B").sync().build("fsynced")


def messages(machine: Machine, recorded: RecordedWorkload, judge: Judge) -> list[str]:
    """The judge's objections to the crash states of a recording."""
    found = []
    for interval in intervals_of(explored(machine, recorded)):
        for history, outcome in product(instants_of(interval, recorded.workload), interval.outcomes):
            opinion = judge.check(history, Observation.from_wire(outcome.observation))
            assert "cannot tell" not in opinion.message
            found.extend([opinion.message] if opinion.verdict is Verdict.VIOLATED else [])
    return found


@pytest.mark.parametrize("target", ["ext4-current", pytest.param("ext3-ordered", marks=pytest.mark.full)])
def test_a_drive_that_ignores_flushes_breaks_fsync(machine: Machine, record: Record, target: str) -> None:
    (durability,) = judges_named(["durability"])
    assert messages(machine, record(target, FSYNCED, "cache"), durability) == []
    assert any("fsync A" in message for message in messages(machine, record(target, FSYNCED, "lying"), durability))


@pytest.mark.parametrize("target", ["ext4-current", "btrfs", "xfs"])
def test_an_honest_drive_satisfies_every_checker(machine: Machine, record: Record, target: str) -> None:
    recorded = record(target, FSYNCED, "cache")
    for checker in CHECKERS:
        if not recorded.recover().shows(checker.looks_at):
            continue
        assert messages(machine, recorded, checker) == []
