"""The default hunt finds soon what a hunt of one grammar misses: each of these planted bugs needs another source."""

import json
from pathlib import Path
from typing import Any

import pytest

from postcrash.model import ExitCode

from .command import postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant

FIRST = "48"
"""So many workloads have a turn of each source, four times over."""


def hunted(folder: Path, *options: str) -> dict[str, Any]:
    ran = postcrash(folder, "hunt", "--target", "ext4-current", "--json", "-", "--no-minimize", *options)
    assert ran.returncode in (ExitCode.VIOLATED, ExitCode.UNDECIDED, ExitCode.HOLDS), ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


@pytest.mark.parametrize(
    ("function", "judge"),
    [
        ("ext4_orphan_cleanup", "fsck"),  # room is lost, which no tree shows
        ("jbd2_journal_test_revoke", ""),  # needs a block that is used again
    ],
)
def test_what_needs_a_checker_or_a_history_is_found_among_the_first(tmp_path: Path, function: str, judge: str) -> None:
    kernel = mutant(tmp_path, function, RETURN_SUCCESS)
    asked = ("--workload-limit", FIRST, "--budget", "200")
    broken = hunted(tmp_path, *asked, "--kernel", str(kernel.path))
    stock = hunted(tmp_path, *asked)
    words = {(group["checker"], group["message"]) for group in broken["groups"]}
    news = words - {(group["checker"], group["message"]) for group in stock["groups"]}
    assert {checker for checker, _ in news if not judge or checker == judge}


def test_each_probe_is_part_of_the_result(tmp_path: Path) -> None:
    told = hunted(tmp_path, "--workload-limit", "24", "--budget", "64")
    assert told["tested"]["fsck"] > 0
    assert told["tested"]["same-recovery"] > 0
    assert sum(told["default"].values()) > told["workloads"]["selected"] == 24
    assert int(told["states_within_recovery"]) > 0


def test_the_rest_is_run_by_the_same_command_without_a_limit(tmp_path: Path) -> None:
    asked = ("--budget", "64", "--one-disk")
    first = hunted(tmp_path, *asked, "--workload-limit", "6")
    more = hunted(tmp_path, *asked, "--workload-limit", "12")
    assert first["workloads"]["run"] < more["workloads"]["run"]
