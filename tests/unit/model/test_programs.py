"""Programs in workloads: what is given, what is known after a run, and what nobody can simulate."""

import pytest

from postcrash.model import Observation, ObservationError, SimulationError, parse_workload, simulate
from postcrash.model.segments import BYTES

TEXT = 'run "echo old >f"\n---\nrun "sh put.sh \\"a b\\""\nsync\n'


def test_what_a_program_said_becomes_operations() -> None:
    ran = parse_workload(TEXT, "w").as_run([["not counted"], ["put 1", ""]])
    words = [str(operation) for operation in ran.operations]
    assert words == ['run "echo old >f"', 'run "sh put.sh \\"a b\\""', 'says "put 1"', 'says ""', "ends", "sync"]
    assert parse_workload(ran.to_text(), "w") == ran
    assert ran.runs_programs


def test_a_workload_without_programs_runs_as_it_is() -> None:
    workload = parse_workload("creat f\nsync\n", "w")
    assert not workload.runs_programs
    assert workload.as_run([]) == workload


def test_a_program_cannot_be_simulated() -> None:
    with pytest.raises(SimulationError, match="not known before it runs"):
        simulate(parse_workload(TEXT, "w"))


def told(source: object, size: int = 3) -> object:
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}
    file = {"path": "f", "type": "file", "mode": 0o644, "nlink": 1, "inode": 1, "size": size}
    return {
        **{"mount_errno": 0, "bytes": True, "klog": [], "klog_whole": True, "fsck": None, "used": None},
        "tree": [root, {**file, "segments": [[0, size, source]]}],
    }


def test_bytes_are_read_as_they_are() -> None:
    (segment,) = Observation.from_wire(told("bytes:00ff10")).tree["f"].segments
    assert segment == (0, 3, f"{BYTES}00ff10")


@pytest.mark.parametrize("source", ["bytes:00ff", "bytes:00ff1", "bytes:00ff1g", "bytes:00ff1000", "bytes:"])
def test_bytes_that_are_not_those_of_the_segment_are_refused(source: str) -> None:
    with pytest.raises(ObservationError, match="hexadecimal digits for each of 3 bytes"):
        Observation.from_wire(told(source))
