"""A violated workload need not be explored to the end, but every other workload must be."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.guests.machine import Machine
from postcrash.harness.places import cache_folder
from postcrash.model import Verdict, WorkloadBuilder
from postcrash.targets import base_image, target_named

FILES = WorkloadBuilder().begin()
for name in "abcd":
    FILES = FILES.creat(name).write(name, 0, 8192).fsync(name)
WORKLOAD = FILES.build("files").with_tail()
ENOUGH = 12


@pytest.fixture
def both(machine: Machine, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Examination, Examination]:
    """Two examinations of the workload on the target: one until there was enough, and one to the end."""
    target = target_named(request.param)
    plan = Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel="any",
        guest="any",
        workload=WORKLOAD,
        judges=judges_named(["durability", "mounts"]),
        recoveries=(target.recovery(walk=True, fsck=False),),
        how=Exploration(budget=Budget(2000, 300)),
    )
    enough, whole = (
        examine(machine, replace(plan, enough=enough), tmp_path / f"{enough}.pcr", lambda _: None)
        for enough in (ENOUGH, None)
    )
    return enough, whole


@pytest.mark.parametrize("both", ["ext4-current", "btrfs", "xfs"], indirect=True)
def test_where_nothing_is_violated_all_is_explored(both: tuple[Examination, Examination]) -> None:
    enough, whole = both
    assert enough.recoveries + enough.remembered > ENOUGH
    for name in ("verdict", "states", "covered", "intervals", "instants", "is_cut_short", "is_whole"):
        assert getattr(enough, name) == getattr(whole, name)
    assert enough.verdict is Verdict.HOLDS
    assert enough.is_whole


@pytest.mark.parametrize("both", ["ext4-nobarrier"], indirect=True)
def test_where_something_is_violated_the_rest_is_left_out(both: tuple[Examination, Examination]) -> None:
    enough, whole = both
    assert enough.verdict is whole.verdict is Verdict.VIOLATED
    assert enough.findings
    assert (enough.is_cut_short, enough.is_whole) == (True, False)
    assert not whole.is_cut_short
    assert whole.covered > enough.covered
    violated = [{name for name, ruling in each.rulings.items() if ruling.verdict is Verdict.VIOLATED} for each in both]
    assert violated[0] <= violated[1]
