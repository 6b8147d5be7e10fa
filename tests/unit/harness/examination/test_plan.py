"""How plans and findings are told apart: a run's key and a finding's id have everything on which a result depends."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.model import parse_workload
from postcrash.reports.explanation import explanation
from postcrash.targets import BaseImage, target_named

EXT4 = target_named("ext4-current")
HOW = Exploration()
WALK = EXT4.recovery(walk=True, fsck=False)
PLAN = Plan(
    target=EXT4,
    base=BaseImage(Path("base.img"), "b-0123456789abcdef"),
    kernel="UML 6.1.176",
    guest="0" * 64,
    workload=parse_workload("creat a\n", "w"),
    judges=judges_named(["mounts"]),
    recoveries=(WALK,),
    how=HOW,
    explainer=explanation,
)
CHANGES: dict[str, dict[str, Any]] = {
    "target": {"target": replace(EXT4, options="data=journal")},
    "base image": {"base": BaseImage(Path("base.img"), "b-0123456789abcdee")},
    "kernel": {"kernel": "QEMU/TCG 6.1.176"},
    "another build": {"guest": "1" * 64},
    "workload": {"workload": parse_workload("creat b\n", "w")},
    "recorder": {"how": replace(HOW, recorder="dm-log-writes")},
    "held": {"how": replace(HOW, held=0)},
    "another order": {"how": replace(HOW, held=1)},
    "model": {"how": replace(HOW, model="lying")},
}
ONLY_OF_RUNS: dict[str, dict[str, Any]] = {
    "judges": {"judges": judges_named(["fsck"])},
    "kinds of recovery": {"recoveries": (EXT4.recovery(walk=True, fsck=True),)},
    "budget": {"how": replace(HOW, budget=Budget(1, None))},
    "seed": {"how": replace(HOW, seed=2)},
    "depth": {"how": replace(HOW, depth=2)},
    "findings": {"findings_max": 2},
    "first objections": {"seeks_more_violations": False},
}


def run_key(plan: Plan) -> str:
    return plan.key("tool")


def id_of(plan: Plan) -> str:
    return plan.finding_id("mounts", "it does not", WALK, within_recovery=False)


def changed(plan_id: Callable[[Plan], str], changes: dict[str, dict[str, Any]]) -> set[str]:
    """The names of those `changes` that make it another plan."""
    return {name for name, change in changes.items() if plan_id(replace(PLAN, **change)) != plan_id(PLAN)}


def test_the_key_of_a_run_depends_on_all_that_its_result_does() -> None:
    changes = CHANGES | ONLY_OF_RUNS
    assert changed(run_key, changes) == set(changes)
    assert PLAN.key("another tool") != run_key(PLAN)
    assert len({run_key(replace(PLAN, **change)) for change in changes.values()}) == len(changes)


def test_the_id_of_a_finding_depends_on_what_was_found_and_where() -> None:
    assert changed(id_of, CHANGES) == set(CHANGES)
    assert len({id_of(replace(PLAN, **change)) for change in CHANGES.values()}) == len(CHANGES)


def test_the_id_of_a_finding_is_the_same_however_long_it_was_looked_for() -> None:
    assert changed(id_of, ONLY_OF_RUNS) == set()


@pytest.mark.parametrize(
    "other",
    [
        PLAN.finding_id("fsck", "it does not", WALK, within_recovery=False),
        PLAN.finding_id("mounts", "it never does", WALK, within_recovery=False),
        PLAN.finding_id("mounts", "it does not", WALK, within_recovery=True),
        PLAN.finding_id("mounts", "it does not", replace(WALK, use_after=True), within_recovery=False),
    ],
    ids=["judge", "message", "crash within recovery", "kind of recovery"],
)
def test_what_is_said_and_of_which_recovery_makes_another_finding(other: str) -> None:
    assert other != id_of(PLAN)


def test_who_reads_the_files_makes_no_other_finding() -> None:
    """A witness is recovered once more, and then the kernel reads every file."""
    assert PLAN.finding_id("mounts", "it does not", WALK.by_kernel(), within_recovery=False) == id_of(PLAN)
