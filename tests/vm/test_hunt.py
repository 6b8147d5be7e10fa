"""Hunts with real kernels find nothing on honest drives, and find planted bugs, group them and reduce them."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.checkers.in_place import InPlace
from postcrash.checkers.removed_names import RemovedNames
from postcrash.checkers.untorn import Untorn
from postcrash.harness.budget import Budget
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import Crew
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.minimize import MinimalFinding, minimize
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.harness.hunting.groups import summaries
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import Operation, Verdict, Workload, parse_workload
from postcrash.reports.explanation import explanation
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.targets import Mount, base_image, load_target, target_named
from postcrash.workloads import Grammar, WorkloadSpace
from postcrash.workloads.grammar import Point, Template

from .command import COMMAND, postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant
from .test_cli import finished_runs

NAMES = Grammar(
    name="names",
    files=("foo", "A/foo", "A/bar"),
    folders=("A",),
    templates=(
        Template("creat", (("foo", "A/foo"),)),
        Template("write", (("foo",),), ranges=("append",)),
        Template("link", (("foo",), ("A/bar",))),
        Template("rename", (("foo",), ("A/bar",))),
    ),
    points=(Point("fsync", "related"), Point("sync", "everything")),
    checkpoint=False,
)
CREATIONS = replace(NAMES, name="creations", templates=NAMES.templates[:1])


def report(result: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
    """The JSON that a hunt prints with `--json -`."""
    assert result.returncode == code, result.stderr or result.stdout
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("target", "limit"), [("ext4-current", 20), ("btrfs", 20), pytest.param("xfs", 20, marks=pytest.mark.full)]
)
def test_journals_keep_their_promises(tmp_path: Path, target: str, limit: int) -> None:
    arguments = (
        "hunt",
        "--ops",
        "2",
        "--target",
        target,
        "--workload-limit",
        str(limit),
        "--seed",
        "11",
        "--json",
        "-",
    )
    found = report(postcrash(tmp_path, *arguments), 0)
    assert (found["verdict"], found["groups"], found["workloads"]["undecided"]) == ("holds", [], {})
    assert found["workloads"]["run"] + found["workloads"]["same"] + found["workloads"]["alike"] == limit
    assert int(found["states"]) == int(found["states_total"]) > found["recoveries"] > limit
    assert list((tmp_path / ".postcrash/recordings").iterdir()) == []
    assert found["tested"].keys() == set(found["judges"])
    tested = {checker.name: found["tested"].get(checker.name, 1) for checker in (*CHECKERS, *PRACTICE)}
    never = [name for name, count in tested.items() if not 0 < count <= found["workloads"]["run"]]
    # These workloads of ace take no name from a file that is fsynced later, and ace replaces no file in place, nor has
    # it a write with RWF_ATOMIC.
    assert never == [Untorn.name, RemovedNames.name, *[InPlace.name] * (target == "ext4-current")]


def test_a_file_system_without_a_journal_breaks_them(tmp_path: Path) -> None:
    arguments = ("hunt", "--ops", "1", "--target", "ext2", "--workload-limit", "25", "--no-minimize", "--json", "-")
    found = report(postcrash(tmp_path, *arguments), 1)
    assert sum(group["count"] for group in found["groups"]) > len(found["groups"]) > 1
    assert {"durability"} <= {group["checker"] for group in found["groups"]}
    first = found["groups"][0]
    shown = postcrash(tmp_path, "explain", first["finding"])
    assert shown.returncode == 0, shown.stderr
    again = postcrash(tmp_path, "repro", first["finding"])
    assert again.returncode == 1, again.stderr


def test_an_interrupted_hunt_goes_on(tmp_path: Path) -> None:
    arguments = [
        "hunt",
        "--ops",
        "1",
        "--one-disk",
        "--target",
        "ext4-current",
        "--workload-limit",
        "120",
        "--json",
        "-",
    ]
    database = tmp_path / ".postcrash/verdicts.db"
    process = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not finished_runs(database):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2, errors
    kept = finished_runs(database)
    assert 0 < kept < 120
    whole = report(postcrash(tmp_path, *arguments), 0)
    assert whole["workloads"]["run"] == finished_runs(database) > kept
    assert whole == {**report(postcrash(tmp_path, *arguments), 0), "seconds": whole["seconds"]}


Hunt = Callable[..., HuntResult]


@pytest.fixture
def plan() -> Plan:
    """What is done with each workload."""
    target = target_named("ext4-current")
    return Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel="kernel",
        guest="guest",
        workload=parse_workload("sync", "none"),
        judges=judges_named(["durability"]),
        recoveries=(target.recovery(walk=True, fsck=False),),
        how=Exploration(budget=Budget(60, None)),
        explainer=explanation,
    )


@pytest.fixture
def hunted(store: Store, settings: MachineSettings) -> Hunt:
    """Hunts through the workloads of one operation, by default of those in `NAMES`."""

    def run(plan: Plan, grammar: Grammar = NAMES) -> HuntResult:
        with TerminalProgress(None) as progress:
            return run_hunt(
                Selection(WorkloadSpace(grammar, 1)), {Probe.WALK: plan}, Crew(settings, 2), store, progress, fresh=True
            )

    return run


def test_a_lying_drive_is_found(hunted: Hunt, plan: Plan, store: Store) -> None:
    found = hunted(replace(plan, how=replace(plan.how, model="lying")))
    assert found.verdict is Verdict.VIOLATED
    told = summaries(found.groups.values(), store, None)
    assert any("sync" in summary.shown.message and summary.shown.lost for summary in told)


Smallest = Callable[[HuntResult, Plan], set[str]]


@pytest.fixture
def smallest(store: Store, settings: MachineSettings) -> Smallest:
    """The workloads of a hunt's groups, each minimized. None may be left unfinished."""

    def run(found: HuntResult, plan: Plan) -> set[str]:
        def least(finding: Finding) -> MinimalFinding:
            workload = parse_workload(finding.workload_text, finding.workload_name)
            with Spare(settings) as machine, TerminalProgress(None) as progress:
                return minimize(finding, replace(plan, workload=workload), machine, store, progress, fresh=True)

        assert found.verdict is Verdict.VIOLATED
        told = summaries(found.groups.values(), store, least)
        assert [summary.note for summary in told] == [""] * len(told)
        return {summary.shown.workload_text for summary in told}

    return run


def test_a_mount_option_that_takes_flushes_away_is_found(
    hunted: Hunt, plan: Plan, smallest: Smallest, tmp_path: Path
) -> None:
    """With `nobarrier` ext4 sends no flush, so promises of fsync and sync are broken."""
    file = tmp_path / "without-flushes.toml"
    file.write_text('name = "without-flushes"\nlike = "ext4-current"\ntitle = "no flushes"\noptions = "nobarrier"\n')
    target = load_target(file)
    without = replace(plan, target=target, base=base_image(target, cache_folder() / "bases"))
    assert smallest(hunted(without, CREATIONS), without) == {"creat a\ncommit\nsync\n"}


def test_a_drive_that_drops_one_flush_is_found(
    hunted: Hunt, plan: Plan, smallest: Smallest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last flush before `fsync .` returns is dropped, as if the drive had not been asked for it."""
    honest = Machine.record

    def record(machine: Machine, base: Path, mount: Mount, workload: Workload, out: Path, *more: Any) -> Workload:
        ran = honest(machine, base, mount, workload, out, *more)
        for number, operation in enumerate(workload.operations):
            if str(operation) == "fsync .":
                drop_flush(out, number)
        return ran

    monkeypatch.setattr(Machine, "record", record)
    assert smallest(hunted(plan, CREATIONS), plan) == {"creat a\nfsync .\ncommit\nsync\n"}


def drop_flush(file: Path, operation: int) -> None:
    """Take the last flush of an operation out of a recording."""
    recording = Recording(file)
    events = recording.events()
    ends = events.index(("returned", operation, 0))
    dropped = max((event[1] for event in events[:ends] if event[0] == "flush"), default=None)
    written = [
        (*event[:3], recording.data(number), *event[4:]) if event[0] == "write" else event
        for number, event in enumerate(events)
        if event not in (("flush", dropped), ("complete", dropped))
    ]
    copy = file.with_suffix(".dropped")
    write_recording(copy, recording.disk_sectors, recording.metadata, written)
    copy.replace(file)


def test_an_fsync_that_does_nothing_is_found_and_made_small(
    hunted: Hunt, plan: Plan, smallest: Smallest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the workload says `fsync .`, which promises names, the guest is told to msync an empty file instead."""
    honest = Machine.record

    def record(machine: Machine, base: Path, mount: Any, workload: Workload, *more: Any) -> Workload:
        nothing = Operation("msync", ".postcrash")
        ops = tuple(nothing if str(op) == "fsync ." else op for op in workload.ops)
        honest(machine, base, mount, replace(workload, ops=ops), *more)
        return workload

    assert hunted(plan).verdict is Verdict.HOLDS
    monkeypatch.setattr(Machine, "record", record)
    assert "creat a\nfsync .\ncommit\nsync\n" in smallest(hunted(plan), plan)


def test_a_badly_broken_kernel_is_told_of_before_its_hunt_ends(tmp_path: Path) -> None:
    limits = ("--workload-limit", "6", "--seed", "2", "--time", "15s")
    arguments = ["hunt", "--ops", "1", "--target", "ext4-nobarrier", *limits, "--json", "-"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    told = [line for line in iter(process.stderr.readline, "") if process.poll() is None]
    output, _ = process.communicate()
    first = next(line for line in told if line.startswith("explained: ")).split()[-1]
    found = json.loads(output)
    assert (process.returncode, found["verdict"]) == (1, "violated")
    assert postcrash(tmp_path, "explain", first).returncode == 0


def test_a_hunt_ends_in_its_time_and_goes_on(tmp_path: Path) -> None:
    arguments = ["hunt", "--ops", "2", "--target", "ext4-current", "--json", "-"]
    part = report(postcrash(tmp_path, *arguments, "--time", "6s"), 6)
    assert part["verdict"] == "undecided"
    assert part["workloads"]["not_run"] > 0
    more = report(postcrash(tmp_path, *arguments, "--time", "6s"), 6)
    assert more["workloads"]["not_run"] < part["workloads"]["not_run"]


def test_a_file_that_was_durable_shows_an_fsync_that_does_nothing(tmp_path: Path) -> None:
    kernel = mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS)
    arguments = ("hunt", "--grammar", "full", "--setup", "synced", "--expect", "documents", "--no-minimize")
    asked = (*arguments, "--target", "ext4-current", "--kernel", str(kernel.path), "--workload-limit", "12")
    found = report(postcrash(tmp_path, *asked, "--json", "-"), 1)
    assert "durability" in {group["checker"] for group in found["groups"]}
    assert any("---" in group["workload"] for group in found["groups"])


def test_a_random_hunt_finds_what_takes_three_operations_and_goes_on(tmp_path: Path) -> None:
    """These are a write, the file that it needs, and an fsync that does nothing."""
    kernel = mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS)
    arguments = ("hunt", "--random", "--target", "ext4-current", "--kernel", str(kernel.path), "--no-minimize")
    limited = (*arguments, "--budget", "200", "--json", "-", "--workload-limit")
    part = report(postcrash(tmp_path, *limited, "3"), 1)
    more = report(postcrash(tmp_path, *limited, "6"), 1)
    assert (part["workloads"]["run"], more["workloads"]["run"]) == (3, 6)
    assert more["workloads"]["new"] >= part["workloads"]["new"] > 0
