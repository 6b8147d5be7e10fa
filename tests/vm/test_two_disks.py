"""A hunt looks at each workload on a disk that completes writes at once and on one that holds them back."""

from pathlib import Path

from postcrash.model import ExitCode

from .mutant_kernel import RETURN_SUCCESS, mutant
from .test_cli import postcrash
from .test_hunt import report

HUNT = ("hunt", "--ops", "1", "--workload-limit", "12", "--seed", "5", "--no-minimize", "--json", "-")


def test_a_commit_that_nobody_waits_for_is_found(tmp_path: Path) -> None:
    """jbd2 writes the commit, but nothing waits for it."""
    kernel = mutant(tmp_path, "jbd2_log_wait_commit", RETURN_SUCCESS)
    asked = (*HUNT, "--target", "ext4-journal", "--kernel", str(kernel.path))
    both = report(postcrash(tmp_path, *asked), ExitCode.VIOLATED)
    assert both["held"] == [None, 1]
    assert {"fsync-names", "durability"} & {group["checker"] for group in both["groups"]}


def test_each_disk_has_its_own_crash_states(tmp_path: Path) -> None:
    """What a hunt on one disk has put into the store does for that disk only."""
    arguments = (*HUNT, "--target", "ext4-current")
    both, at_once, held = (
        report(postcrash(tmp_path, *arguments, *more), ExitCode.HOLDS)
        for more in ((), ("--one-disk",), ("--held", "1"))
    )
    assert int(both["states"]) == int(at_once["states"]) + int(held["states"])
    assert both["workloads"]["run"] == at_once["workloads"]["run"] == held["workloads"]["run"]
