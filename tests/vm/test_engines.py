"""QEMU and user-mode Linux find the same outcomes. A QEMU guest that is lost is noticed like any other."""

import json
import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.errors import GuestLostError, InfrastructureError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.engine import Qemu
from postcrash.harness.guests.events import ExplorationEvent, IntervalReport, LostGuest, ProgressEvent
from postcrash.harness.guests.initramfs import initramfs
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import Workload, WorkloadBuilder
from postcrash.targets import base_image, target_named

from .command import one_line, postcrash
from .conftest import RecordedWorkload, explored, intervals_of
from .test_lost_guests import guest_of

BUDGET = Budget(120, 300)
RECOVERIES_MAX = 60
"""Reads that nobody waits for decide nothing. If no sleep were seen, ext4's journal would cost 200 to 1,500."""

WORKLOADS = [
    WorkloadBuilder()
    .begin()
    .creat("A")
    .write("A", 0, 12288)
    .fsync("A")
    .rename("A", "B")
    .mkdir("D")
    .link("B", "D/C")
    .fsync("B")
    .build("names")
    .with_tail(checkpoint=False),
    WorkloadBuilder()
    .creat("A")
    .write("A", 0, 12288)
    .begin()
    .write("A", 4096, 4096)
    .append("A", 5000)
    .fsync("A")
    .truncate("A", 100)
    .unlink("A")
    .build("contents")
    .with_tail(checkpoint=False),
]


def recorded_by(machine: Machine, target_name: str, workload: Workload, out: Path) -> RecordedWorkload:
    """A recording made on `machine`."""
    target = target_named(target_name)
    base = base_image(target, cache_folder() / "bases")
    machine.record(base.path, target.mount, workload, out, {})
    return RecordedWorkload(target, workload, Source(out, base.path, "cache"))


def all_outcomes(intervals: list[IntervalReport]) -> list[dict[str, Any]]:
    """Each interval's observations with the number of crash states that lead to them."""
    return [{json.dumps(o.observation, sort_keys=True): o.states for o in i.outcomes} for i in intervals]


def recoveries(intervals: list[IntervalReport]) -> int:
    return sum(interval.recoveries for interval in intervals)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.parametrize(
    "target", [pytest.param("ext4-original", marks=pytest.mark.full), "ext4-journal", "btrfs", "xfs"]
)
def test_both_engines_find_the_same_outcomes(
    machine: Machine, qemu: Machine, tmp_path: Path, target: str, workload: Workload
) -> None:
    for recorder in (machine, qemu):
        recorded = recorded_by(recorder, target, workload, tmp_path / "recording.pcr")
        by_uml, by_qemu = (intervals_of(explored(each, recorded)) for each in (machine, qemu))
        assert all(interval.covered == interval.states for interval in by_qemu)
        assert sum(len(interval.outcomes) for interval in by_qemu) > len(by_qemu)
        assert all_outcomes(by_qemu) == all_outcomes(by_uml)
        assert max(recoveries(by_uml), recoveries(by_qemu)) < RECOVERIES_MAX


def test_results_say_what_they_were_made_on(image: Kernel, tmp_path: Path) -> None:
    example, kernel = "small.ops", ("--kernel", image.path.parent.name)
    (tmp_path / example).write_text("creat a\nwrite a 0 4096\nfsync a\n")
    asked = ("--target", "btrfs", "--judge", "durability", *kernel, "--guests", "1", "--json", "-")
    checked = postcrash(tmp_path, "check", example, *asked)
    report = json.loads(checked.stdout)
    assert report["states"] == report["states_total"]
    certified = postcrash(tmp_path, "certify", "--samples", "20", "--json", "-", *kernel)
    assert json.loads(certified.stdout) == {"samples": 20, "confirmed": 20, "wrong": []}
    refused = one_line(postcrash(tmp_path, "certify", "--kernel", "6.1"), 4)
    assert f"the certificates were made on {image.label}, not on UML 6.1" in refused
    mixed = postcrash(tmp_path, "check", example, "--target", "btrfs", *kernel, "--engine", "uml")
    assert f"--engine uml cannot run {kernel[1]}: it needs --engine qemu" in one_line(mixed, 4)


def test_one_table_for_several_kernels(image: Kernel, tmp_path: Path) -> None:
    name = image.path.parent.name
    (tmp_path / "other.toml").write_text('like = "ext4-current"\nname = "other"\nfstype = "nosuchfs"\n')
    targets = ("--kernel", f"6.1,{name}", "--fs", "ext4-nodelalloc,other.toml")
    asked = (*targets, "--property", "P4", "--one-disk", "--guests", "1")
    written = postcrash(tmp_path, "characterize", *asked, "--json", "matrix.json", "--markdown", "matrix.md")
    assert written.returncode == 0, written.stderr
    matrix = json.loads((tmp_path / "matrix.json").read_text())
    first, second = matrix["kernels"]
    assert (first["name"], second["name"], matrix["changes"]) == ("6.1", name, [])
    assert [list(kernel["served"].values()) for kernel in (first, second)] == [[["ext4-nodelalloc"]]] * 2
    assert next(iter(first["served"])).startswith("UML 6.1.")
    assert list(second["served"]) == [image.label]
    for kernel in (first, second):
        there, absent = kernel["cells"]
        assert (there["verdict"], there["relevant"] > 0, absent["workloads"]) == ("holds", True, 0)
        assert absent["reason"].endswith("has no nosuchfs (target other)")
    assert "| ext4-nodelalloc | ✓✓° |\n| other | –– |" in (tmp_path / "matrix.md").read_text()
    assert "✓✓" in written.stdout


@pytest.mark.parametrize(
    ("disturb", "what"), [(signal.SIGKILL, "died"), pytest.param(signal.SIGSTOP, "hangs", marks=pytest.mark.full)]
)
def test_a_lost_guest_is_replaced(qemu_settings: MachineSettings, tmp_path: Path, disturb: int, what: str) -> None:
    with Machine(replace(qemu_settings, command_timeout_s=5.0)) as fragile:
        recorded = recorded_by(fragile, "ext4-journal", WORKLOADS[0], tmp_path / "recording.pcr")
        undisturbed = intervals_of(explored(fragile, recorded, budget=BUDGET, brute_force=True, recheck_share=0.0))
        events: list[ExplorationEvent] = []
        for event in fragile.explore(recorded.source, recorded.recover(), BUDGET, brute_force=True, recheck_share=0.0):
            if isinstance(event, ProgressEvent) and not any(isinstance(each, ProgressEvent) for each in events):
                os.kill(guest_of(fragile), disturb)
            events.append(event)
    (lost,) = (event for event in events if isinstance(event, LostGuest))
    assert what in lost.what or "closed its disk" in lost.what
    assert intervals_of(events) == undisturbed


def test_a_silent_guest_is_asked_where_it_is(qemu_settings: MachineSettings, tmp_path: Path) -> None:
    hasty = replace(qemu_settings, command_timeout_s=0.02)
    target = target_named("ext4-current")
    base = base_image(target, cache_folder() / "bases")
    with Machine(hasty) as machine, pytest.raises(GuestLostError, match="hangs") as raised:
        machine.record(base.path, target.mount, WORKLOADS[0], tmp_path / "recording.pcr", {})
    stacks = raised.value.lost.stacks
    assert re.search(r"sysrq: Show Regs(?s:.*)RIP: 0010:", stacks), stacks
    assert "Show Blocked State" in stacks


def test_a_kernel_that_panics_is_a_lost_guest(qemu_settings: MachineSettings, tmp_path: Path) -> None:
    empty = tmp_path / "empty.cpio"
    empty.write_bytes(initramfs(tmp_path / "nothing"))
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"died|closed its disk") as raised:
        Machine(replace(qemu_settings, root=empty)).boot()
    assert "Kernel panic" in raised.value.evidence
    assert time.monotonic() - started < qemu_settings.engine.boot_timeout_s


def test_a_program_that_is_no_qemu_is_one_clear_error(qemu_settings: MachineSettings, tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\necho no machine here\n")
    program.chmod(0o755)
    assert isinstance(qemu_settings.engine, Qemu)
    settings = replace(qemu_settings, engine=replace(qemu_settings.engine, program=program))
    with pytest.raises(InfrastructureError, match="died") as raised, Machine(settings):
        pass
    assert "no machine here" in raised.value.evidence
