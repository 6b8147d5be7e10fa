"""The general checkers raise no false alarm on honest drives, and do raise one on a lying drive.

With --full: more targets that resemble others, and more recoveries of those that are unsafe.
"""

import json
import random
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals
from postcrash.checkers import CHECKERS
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.guests.kernels.file_systems import has_file_system
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine
from postcrash.model import History, Observation, Verdict, WorkloadBuilder
from postcrash.targets import TARGETS

from .command import ROOT, postcrash
from .conftest import Record

ALONE = tuple(checker.name for checker in CHECKERS if checker.name != "boots")
"""The checkers that judge a recovery by mounting alone."""
GENERAL = tuple(argument for name in ALONE for argument in ("--judge", name))
EXAMPLE = str(ROOT / "examples/create-fsync.ops")


HERE = {target.name for target in TARGETS if has_file_system(find_kernel(), target.fstype)}
UNSAFE = {
    "ext2",
    "ext2-sync",
    "ext4-async-commit",
    "ext4-nobarrier",
    "f2fs",
    "f2fs-full",
    "f2fs-nobarrier",
    "f2fs-strict",
    "fuse2fs",
    "jfs",
    "minix",
    "vfat",
}
"""These have no journal, no flushes or no wait for data: after a crash they may need fsck, fail or show stale bytes."""
LEFT_TO_FULL = {
    *("ext3-journal", "ext3-ordered", "ext3-writeback", "ext4-full", "ext4-nodelalloc", "ext4-original", "ext4-sync"),
    *("xfs-full", "xfs-wsync", "ext2-sync", "f2fs-full", "f2fs-nobarrier", "f2fs-strict", "fuse2fs", "jfs", "reiserfs"),
}
"""Other targets do what these do, or these take up to two minutes each: --full runs them."""
LARGE = {"xfs", "ext4-journal", "xsyncfs"}
"""Here the example has hundreds of crash states or more."""
CHECKSUMMED_LOG = "nilfs2"
"""A recovery reads everything that was in flight, so there are as many recoveries to run as crash states."""


EACH = {name: pytest.param(name, marks=[pytest.mark.full] * (name in LEFT_TO_FULL)) for name in HERE | UNSAFE}


@pytest.mark.parametrize("target", [EACH[name] for name in sorted(HERE - UNSAFE - {CHECKSUMMED_LOG})])
def test_no_false_alarm(tmp_path: Path, target: str, pytestconfig: pytest.Config) -> None:
    """Without --full, those that have most crash states to check with fsck have a smaller workload."""
    (tmp_path / "small.ops").write_text("creat a\nfsync a\n")
    example = "small.ops" if target in LARGE and not pytestconfig.option.full else EXAMPLE
    result = postcrash(tmp_path, "check", example, "--target", target, *GENERAL, "--json", "-")
    assert result.returncode == 0, result.stderr or result.stdout
    report = json.loads(result.stdout)
    assert (report["verdict"], report["findings"]) == ("holds", [])
    assert set(report["judges"]) == set(ALONE)


LINKS = "creat a\nmkdir D\n---\nlink a b\nlink a D/c\nunlink b\nmkdir D/E\n"
LATE_DATA = "creat a\nappend a 8192\n"


@pytest.mark.parametrize(
    ("target", "operations", "checkers"),
    [("ext2", LINKS, ("link-counts", "usable")), ("ext3-writeback", LATE_DATA, ("foreign-bytes",))],
)
def test_each_is_found_where_it_is_given_up(
    tmp_path: Path, target: str, operations: str, checkers: tuple[str, ...]
) -> None:
    (tmp_path / "w.ops").write_text(operations)
    asked = [argument for name in checkers for argument in ("--judge", name)]
    result = postcrash(tmp_path, "check", "w.ops", "--target", target, *asked, "--json", "-")
    assert result.returncode == 1, result.stderr
    judges = json.loads(result.stdout)["judges"]
    assert all(judges[name]["standing"] == "not_provided" and judges[name]["denial"] for name in checkers)


def test_no_false_alarm_where_the_budget_ends(tmp_path: Path) -> None:
    names = [name for name in ALONE if name != "fsck"]
    asked = [argument for name in names for argument in ("--judge", name)]
    result = postcrash(tmp_path, "check", EXAMPLE, "--target", CHECKSUMMED_LOG, *asked, "--budget", "60", "--json", "-")
    assert result.returncode == 6, result.stderr or result.stdout
    assert json.loads(result.stdout)["findings"] == []


def test_no_fsck_is_asked_for_where_there_is_none(tmp_path: Path) -> None:
    result = postcrash(tmp_path, "check", EXAMPLE, "--target", CHECKSUMMED_LOG, "--judge", "fsck")
    assert (result.returncode, result.stdout) == (4, "")
    assert "fsck judges a program that no recovery of nilfs2 runs" in result.stderr


@pytest.mark.parametrize("target", [EACH[name] for name in sorted(UNSAFE)])
def test_what_gives_up_safety_is_found(tmp_path: Path, target: str, pytestconfig: pytest.Config) -> None:
    budget = ("--budget", "400" if pytestconfig.option.full else "100")
    result = postcrash(tmp_path, "check", EXAMPLE, "--target", target, *GENERAL, *budget, "--json", "-")
    assert result.returncode == 1, result.stderr
    found = {finding["checker"] for finding in json.loads(result.stdout)["findings"]}
    assert found & {"mounts", "fsck", "durability", "foreign-bytes"}


def test_fsck_finds_what_a_lying_drive_does(machine: Machine, record: Record) -> None:
    workload = (
        WorkloadBuilder().begin().mkdir("D").creat("D/a").write("D/a", 0, 12_288).fsync("D/a").build("w").with_tail()
    )
    recorded = record("ext4-current", workload, "lying")
    *_, interval = intervals(Recording(recorded.source.recording), recorded.source.base, "lying")
    recover = recorded.target.recovery(walk=False, fsck=True)
    history, chance, messages = History(workload, interval.started, interval.returned), random.Random(1), []
    for _ in range(40):
        state = [(number, chance.randrange(len(found[2]))) for number, found in enumerate(interval.components)]
        observation = machine.execute(recorded.source, interval.index, state, recover).observation
        if observation["fsck"] is None:  # the state does not mount
            continue
        opinion = judges_named(["fsck"])[0].check(history, Observation.from_wire(observation))
        assert opinion.verdict is not Verdict.UNDECIDED, opinion.message
        messages.append(opinion.message)
    assert any("fsck exits with status 4" in message for message in messages)


def test_fsck_that_is_content_says_nothing(machine: Machine, record: Record) -> None:
    recorded = record("btrfs", WorkloadBuilder().begin().mkdir("D").build("w").with_tail())
    recover = recorded.target.recovery(walk=False, fsck=True)
    observation = machine.execute(recorded.source, 0, [], recover).observation
    assert observation["fsck"] == {"status": 0, "output": ""}
