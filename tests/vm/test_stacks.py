"""File systems on several disks: a crash takes all at once, and one of them can be lost with it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording
from postcrash.model import ExitCode
from postcrash.targets import STACKS, target_named

from .command import postcrash

WORKLOAD = "creat a\nwrite a 0 65536\nsync\n---\ncreat b\nwrite b 0 65536\nfsync b\n"


def check(folder: Path, target: str, *more: str) -> dict[str, Any]:
    (folder / "w.ops").write_text(WORKLOAD)
    done = postcrash(folder, "check", "w.ops", "--target", target, "--json", "-", *more)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [target.name for target in STACKS if target.lost_disk is None])
def test_a_stack_keeps_its_promises_without_a_false_alarm(name: str, tmp_path: Path) -> None:
    judges = ("--judge", "mounts", "--judge", "durability", "--judge", "kernel-log")
    found = check(tmp_path, name, *judges, "--budget", "300,60s")
    assert found["verdict"] in ("holds", "undecided"), found
    (recording,) = (tmp_path / ".postcrash/recordings").glob("*.pcr")
    disks = Recording(recording).disks
    assert disks == [mib * 2048 for mib in target_named(name).disks_mib]
    ends = [sum(disks[: number + 1]) for number in range(len(disks))]
    writes = [event[2] for event in Recording(recording).events() if event[0] == "write"]
    assert {sum(sector >= end for end in ends) for sector in writes} == set(range(len(disks)))
    assert {event[2] for event in Recording(recording).events() if event[0] == "flush" and len(event) > 2}


def test_a_mirror_keeps_what_was_durable_when_a_disk_is_lost(tmp_path: Path) -> None:
    found = check(tmp_path, "btrfs-raid1-lost", "--judge", "durability")
    assert (found["verdict"], found["states"]) == ("holds", found["states_total"]), found


def test_the_write_hole_of_raid5(tmp_path: Path) -> None:
    """A write changes the parity of what is durable beside it. A crash in between and the loss of a disk lose both."""
    found = check(tmp_path, "btrfs-raid5-lost", "--judge", "durability", "--budget", "1500,100s")
    assert found["verdict"] == "violated"
    last = postcrash(tmp_path, "explain", "last")
    assert re.search(r"disk [012], sectors", last.stdout), last.stdout
    again = postcrash(tmp_path, "repro", "last")
    assert again.returncode == ExitCode.VIOLATED, again.stderr
    mail = postcrash(tmp_path, "report", "last", "-o", "-").stdout
    assert "128 + 128 + 128 MiB" in mail
    assert "disk 1 is lost with the crash" in " ".join(mail.split())


def test_dm_log_writes_logs_one_disk(tmp_path: Path) -> None:
    (tmp_path / "w.ops").write_text(WORKLOAD)
    done = postcrash(tmp_path, "check", "w.ops", "--target", "btrfs-raid1", "--recorder", "dm-log-writes")
    assert done.returncode == ExitCode.USAGE
    assert "records one disk, and this target has 2" in done.stderr
