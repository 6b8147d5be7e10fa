"""A hunt runs each workload on a disk that completes writes at once and on one that holds completions."""

from pathlib import Path

from postcrash.model import ExitCode

from .command import postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant
from .test_hunt import report

HUNT = ("hunt", "--ops", "1", "--no-minimize", "--json", "-", "--target", "ext4-current")
FEW = ("--workload-limit", "12", "--seed", "5")
REPLACEMENTS = ("--grammar", "full", "--setup", "synced", "--shard", "1/40")
"""One of these workloads replaces a synced file by a new file that it does not fsync."""


def test_a_missing_wait_for_data_is_found_by_the_disk_that_takes_its_time(tmp_path: Path) -> None:
    """A rename over another file sends the new data, but nothing waits for it (docs/recorders.md)."""
    report(postcrash(tmp_path, *HUNT, *REPLACEMENTS, "--one-disk"), ExitCode.HOLDS)
    both = report(postcrash(tmp_path, *HUNT, *REPLACEMENTS), ExitCode.VIOLATED)
    assert both["held"] == [None, 1]
    assert {group["checker"] for group in both["groups"]} == {"P5"}


def test_a_commit_that_nobody_waits_for_is_found_on_either_disk(tmp_path: Path) -> None:
    """fsync starts the commit and returns before the kernel stands still, and so before anything completes."""
    kernel = ("--kernel", str(mutant(tmp_path, "jbd2_log_wait_commit", RETURN_SUCCESS).path))
    for disk in ("--one-disk",), ("--held", "1"):
        found = report(postcrash(tmp_path, *HUNT, *FEW, *kernel, *disk), ExitCode.VIOLATED)
        assert {"fsync-names", "durability"} & {group["checker"] for group in found["groups"]}


def test_each_disk_has_its_own_crash_states(tmp_path: Path) -> None:
    """What a hunt on one disk has put into the store counts for this disk only."""
    both, at_once, held = (
        report(postcrash(tmp_path, *HUNT, *FEW, *more), ExitCode.HOLDS)
        for more in ((), ("--one-disk",), ("--held", "1"))
    )
    assert int(both["states"]) == int(at_once["states"]) + int(held["states"])
    assert both["workloads"]["run"] == at_once["workloads"]["run"] == held["workloads"]["run"]
