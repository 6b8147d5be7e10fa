"""A disk that holds completions shows where a wait is missing."""

import json
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals
from postcrash.model import WorkloadBuilder

from .command import EXAMPLE, postcrash
from .conftest import Record, RecordedWorkload

SEED = 1
SEEDS = range(1, 33)
DATA_BLOCKS = 16
REPLACE = (
    WorkloadBuilder()
    .creat("A")
    .append("A", 4096)
    .begin()
    .creat("B")
    .write("B", 0, 65536)
    .rename("B", "A")
    .creat("C")
    .fsync("C")
    .build("replace")
    .with_tail()
)


def intervals_with_data(recorded: RecordedWorkload) -> int:
    """How many crash intervals have the new file's blocks in flight."""
    source = recorded.source
    found = intervals(Recording(source.recording), source.base, source.model)
    return sum(len(interval.pieces) >= DATA_BLOCKS for interval in found)


def test_a_commit_that_does_not_wait_for_data_shows(record: Record) -> None:
    at_once = intervals_with_data(record("ext4-writeback", REPLACE))
    held = [intervals_with_data(record("ext4-writeback", REPLACE, held=seed)) for seed in SEEDS]
    assert max(held) > at_once


@pytest.mark.parametrize("target", ["ext4-writeback", "ext4-current"])
def test_replacing_by_rename_is_not_safe_on_a_disk_that_takes_its_time(tmp_path: Path, target: str) -> None:
    arguments = ("check", str(EXAMPLE), "--target", target, "--judge", "P5", "--held", str(SEED), "--json", "-")
    held = postcrash(tmp_path, *arguments)
    (finding,) = json.loads(held.stdout)["findings"]
    assert held.returncode == 1
    assert postcrash(tmp_path, "repro", finding["id"], "--times", "3").returncode == 1


def test_a_check_says_which_disk_it_looked_at(tmp_path: Path) -> None:
    """A gate and a table say VIOLATED of this workload, because they look at both disks."""
    arguments = ("check", str(EXAMPLE), "--target", "ext4-current", "--judge", "P5")
    at_once, held = postcrash(tmp_path, *arguments), postcrash(tmp_path, *arguments, "--held", "1", "--json", "-")
    said = " ".join(at_once.stdout.split())
    assert at_once.returncode == 0
    assert "HOLDS on ext4-current" in said and "device model cache, a disk that completes writes at once:" in said
    assert "not looked at: a disk that holds completions back" in said
    assert (held.returncode, json.loads(held.stdout)["held"]) == (1, [1])
