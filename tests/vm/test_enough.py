"""A violated workload need not be explored to the end, but every other workload must be, after a first look or not."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import Crew
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.harness.hunting.first_looks import FIRST_LOOKS
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import Verdict, WorkloadBuilder
from postcrash.reports.explanation import explanation
from postcrash.store.store import Store
from postcrash.targets import base_image, target_named
from postcrash.workloads import GRAMMARS, WorkloadSpace

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
        explainer=explanation,
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


FIRST_LOOK = 40


@pytest.mark.parametrize("target", ["ext4-current", pytest.param("xfs", marks=pytest.mark.full), "ext4-nobarrier"])
def test_a_hunt_with_first_looks_finds_the_same(
    tmp_path: Path,
    settings: MachineSettings,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
    target: str,
) -> None:
    """Without --full: with half of the workloads."""
    sample = 16 if pytestconfig.option.full else 8
    base = target_named(target)
    plan = Plan(
        target=base,
        base=base_image(base, cache_folder() / "bases"),
        kernel="any",
        guest="any",
        workload=WORKLOAD,
        judges=judges_named(["durability", "mounts"]),
        recoveries=(base.recovery(walk=True, fsck=False),),
        how=Exploration(budget=Budget(400, None)),
        enough=2 * FIRST_LOOK,
        explainer=explanation,
    )

    def hunted(folder: Path, first_look: int) -> tuple[HuntResult, int]:
        monkeypatch.setitem(FIRST_LOOKS, Probe.WALK, first_look)
        store, selection = Store(folder), Selection(WorkloadSpace(GRAMMARS["full"], 1), sample=sample)
        with TerminalProgress(None) as progress:
            result = run_hunt(selection, {Probe.WALK: plan}, Crew(settings, 2), store, progress)
        rows = len(list(store.runs()))
        store.close()
        return result, rows

    # Both record every workload. On a busy machine a request can come later in one of the two recordings, and then
    # they have not the same instants.
    for attempt in range(3):
        twice, rows_of_twice = hunted(tmp_path / f"twice{attempt}", FIRST_LOOK)
        once, rows_of_once = hunted(tmp_path / f"once{attempt}", 400)
        if twice.counts["instants"] == once.counts["instants"]:
            break
    assert target != "xfs" or rows_of_twice > rows_of_once
    for name in ("verdict", "run", "alike", "same", "tested", "cut_short", "not_run"):
        assert getattr(twice, name) == getattr(once, name), name
    assert twice.groups.keys() == once.groups.keys()
    assert (twice.counts["states"], twice.counts["instants"]) == (once.counts["states"], once.counts["instants"])
