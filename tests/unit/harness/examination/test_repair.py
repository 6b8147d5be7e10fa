"""Recovery by a repair and a mount: its kinds, what judges say of how the repair ended, what is compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import all_judges, is_shown, judges_named, kind_of, recoveries_for
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.repair import (
    ALONE_TOO,
    ONLY_REPAIRED,
    Recovery,
    mounted_alone,
    said_repair,
)
from postcrash.harness.examination.result import Examination
from postcrash.harness.guests.events import ExplorationEvent
from postcrash.model import Entry, FsckResult, History, Observation, Tree, Verdict, parse_workload
from postcrash.reports.explanation import explanation
from postcrash.targets import TARGETS, BaseImage, RecoveryKind, target_named

from .conftest import interval_report
from .fake_machine import FakeMachine, pretended_plan

EXT4, JFS, XFS = map(target_named, ("ext4-current", "jfs", "xfs"))
WORKLOAD = parse_workload("creat a\nfsync a\n", "w")
HISTORY = History(WORKLOAD, 2, 2)
RECORDED = [("started", 0), ("durable",), ("returned", 0, 0), ("started", 1), ("returned", 1, 0)]
TREE = Tree([Entry(".", "dir", nlink=2, inode=1), Entry("a", "file", nlink=1, inode=2)])
ROOT = {"path": ".", "type": "dir", "mode": 493, "nlink": 2, "inode": 1, "xattrs": {}}
FILE = {"path": "a", "type": "file", "mode": 420, "nlink": 1, "inode": 2, "size": 0, "segments": [], "xattrs": {}}


def wire(*entries: dict[str, Any], errno: int = 0, status: int | None = None) -> dict[str, Any]:
    ended = {} if status is None else {"repair": {"status": status, "output": "said"}}
    tree = [] if errno else [ROOT, *entries]
    return {"mount_errno": errno, "tree": tree, "klog": [], "klog_whole": True, "fsck": None, "used": None, **ended}


WAYS: list[tuple[str, Recovery, list[bool]]] = [
    ("ext4-current", "mount", [False]),
    ("ext4-current", "repair", [True]),
    ("ext4-current", "both", [False, True]),
    ("xfs", "mount", [False]),
    ("xfs", "both", [False]),
    *(("jfs", recovery, [True]) for recovery in ("mount", "repair", "both")),
]


@pytest.mark.parametrize(("name", "recovery", "repaired"), WAYS)
def test_each_way_to_recover_has_the_same_kinds(name: str, recovery: Recovery, repaired: list[bool]) -> None:
    kinds = recoveries_for(all_judges(), target_named(name), recovery)
    assert [(kind.is_repaired, kind_of(kind)) for kind in kinds] == [
        (each, kind) for each in repaired for kind in ("walk", "fsck", "use")
    ]
    (boots,) = judges_named(["boots"])
    assert is_shown(boots, target_named(name), recovery) == any(repaired)


def test_what_nothing_repairs_cannot_be_repaired() -> None:
    with pytest.raises(UsageError, match="nothing is run before xfs is mounted"):
        recoveries_for(all_judges(), XFS, "repair")


def test_without_the_repair_it_is_the_recovery_by_mounting_alone() -> None:
    for target in TARGETS:
        repaired = target.recovery(walk=True, fsck=False, repair=True)
        alone = target.recovery(walk=True, fsck=False)
        assert mounted_alone(alone, target) is None
        assert mounted_alone(repaired, target) == (alone if target.repair and not target.needs_repair else None)
    assert said_repair(EXT4.recovery(walk=True, fsck=False, repair=True)) == "e2fsck -p"


@pytest.mark.parametrize("status", [0, 1, 2, 3])
def test_a_boot_that_goes_on_is_judged_by_its_tree(status: int) -> None:
    observation = Observation(0, TREE, klog_whole=True, repair=FsckResult(status, "said"))
    for judge in judges_named(["boots", "mounts", "kernel-log", "durability", "P4"]):
        assert judge.check(HISTORY, observation).verdict is Verdict.HOLDS


@pytest.mark.parametrize("status", [4, 5, 8, 12, 255])
def test_a_boot_that_stops_is_a_violation_and_shows_nothing_else(status: int) -> None:
    observation = Observation(0, TREE, klog_whole=True, repair=FsckResult(status, "a\nb"))
    boots, *others = judges_named(["boots", "mounts", "kernel-log", "durability", "usable", "P4"])
    opinion = boots.check(HISTORY, observation)
    assert (opinion.verdict, opinion.message) == (
        Verdict.VIOLATED,
        f"exit status {status}: the boot needs a person",
    )
    for judge in others:
        shown = judge.check(HISTORY, observation)
        assert shown.verdict is Verdict.UNDECIDED
        assert f"the boot stops at exit status {status}" in shown.message


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (FsckResult(137, ""), "killed by signal 9"),
        (FsckResult(16, "bad"), "usage or syntax error"),
        (FsckResult(2, "Usage: fsck.fat [OPTIONS] DEVICE"), "usage error"),
        (FsckResult(127, ""), "no such program"),
    ],
)
def test_a_repair_that_did_not_get_to_its_end_decides_nothing(result: FsckResult, reason: str) -> None:
    observation = Observation(0, TREE, klog_whole=True, repair=result)
    for judge in judges_named(["boots", "mounts", "kernel-log", "durability", "P4"]):
        opinion = judge.check(HISTORY, observation)
        assert opinion.verdict is Verdict.UNDECIDED
        assert reason in opinion.message


def examined(folder: Path, recovery: Recovery, alone: dict[str, Any], repaired: dict[str, Any]) -> Examination:
    """One crash state, and what it shows when it is mounted alone and when it is repaired first."""

    def shown(recover: RecoveryKind) -> dict[str, Any]:
        return repaired if recover.is_repaired else alone

    def explored(recover: RecoveryKind) -> list[ExplorationEvent]:
        instants = [{"event": 5, "started": 2, "returned": 2}]
        return [interval_report(([], shown(recover)), instants=instants, states="1", covered="1")]

    judges = judges_named(["mounts", "boots", "fsync-names"])
    recoveries, how = recoveries_for(judges, EXT4, recovery), Exploration(recovery=recovery)
    plan = pretended_plan(folder, EXT4, WORKLOAD, judges=judges, recoveries=recoveries, how=how)
    machine = FakeMachine(RECORDED, explored=explored, shown=shown)
    return examine(machine, plan, folder / "run.pcr", lambda _: None)  # type: ignore[arg-type]


GOOD, LOST, DEAD = wire(FILE), wire(), wire(errno=5)
REPAIRED, LOST_BY_REPAIR, STOPPED = wire(FILE, status=1), wire(status=1), wire(FILE, status=4)
GONE = "fsync a (operation 2) had returned, but a is missing"
NEEDS_A_PERSON = "exit status 4: the boot needs a person"
CASES: list[tuple[Recovery, dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    ("both", GOOD, REPAIRED, []),
    ("both", GOOD, LOST_BY_REPAIR, [("fsync-names", f"after e2fsck -p: {GONE}{ONLY_REPAIRED}")]),
    ("repair", GOOD, LOST_BY_REPAIR, [("fsync-names", f"after e2fsck -p: {GONE}{ONLY_REPAIRED}")]),
    ("both", LOST, LOST_BY_REPAIR, [("fsync-names", GONE)]),
    ("repair", LOST, LOST_BY_REPAIR, [("fsync-names", f"after e2fsck -p: {GONE}{ALONE_TOO}")]),
    ("both", LOST, REPAIRED, [("fsync-names", GONE)]),
    ("both", GOOD, STOPPED, [("boots", f"after e2fsck -p: {NEEDS_A_PERSON}{ONLY_REPAIRED}")]),
    ("both", DEAD, STOPPED, [("mounts", "mount failed with EIO (Input/output error)")]),
    ("repair", DEAD, STOPPED, [("boots", f"after e2fsck -p: {NEEDS_A_PERSON}{ALONE_TOO}")]),
]


@pytest.mark.parametrize(("recovery", "alone", "repaired", "expected"), CASES)
def test_a_finding_says_what_mounting_alone_shows(
    tmp_path: Path, recovery: Recovery, alone: dict[str, Any], repaired: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    result = examined(tmp_path, recovery, alone, repaired)
    assert [(finding.checker, finding.message) for finding in result.findings] == expected
    assert (result.verdict is Verdict.VIOLATED) == bool(expected)
    for finding in result.findings:
        assert finding.is_repaired == finding.message.startswith("after e2fsck -p: ")


def test_recoveries_with_a_repair_are_told_apart_from_those_without() -> None:
    judges = judges_named(["mounts"])
    plan = Plan(
        target=EXT4,
        base=BaseImage(Path("base.img"), "b-0"),
        kernel="any",
        guest="any",
        workload=WORKLOAD,
        judges=judges,
        recoveries=recoveries_for(judges, EXT4),
        how=Exploration(),
        explainer=explanation,
    )
    both = replace(plan, recoveries=recoveries_for(judges, EXT4, "both"))
    assert plan.key("tool") != both.key("tool")
    alone, repaired = both.recoveries
    ids = {plan.finding_id("mounts", "m", recover, within_recovery=False) for recover in (alone, repaired)}
    assert len(ids) == 2
