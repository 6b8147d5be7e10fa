"""Workloads over which guests are lost: a finding if the kernel is the cause, a note if it happened only once."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.checkers import CHECKERS
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination import campaign
from postcrash.harness.examination.campaign import Crew, run_campaign, run_plan
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.lost_guests import LOST_GUEST_JUDGE
from postcrash.harness.examination.plan import Plan
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import ExitCode, Verdict, Workload, WorkloadBuilder
from postcrash.reports.explanation import explanation
from postcrash.store.consoles import console_file
from postcrash.store.store import Store
from postcrash.targets import base_image, target_named
from postcrash.workloads import WorkloadSpace

from .command import one_line, postcrash
from .mutant_kernel import LOOP_FOREVER, address, mutant
from .test_hunt import NAMES
from .test_lost_guests import guest_of, running

TIMEOUT_S = 2.0
VICTIM = WorkloadBuilder().begin().creat("A").write("A", 0, 4096).fsync("A").build("victim")
QUIET = WorkloadBuilder().begin().creat("A").sleep(2).sync().build("quiet")
BUSY = WorkloadBuilder().begin().creat("A").write("A", 0, 12288).fsync("A").build("busy")


def plan_for(workload: Workload) -> Plan:
    target = target_named("ext4-current")
    return Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel="any",
        guest="",
        workload=workload.with_tail(),
        judges=tuple(checker for checker in CHECKERS if checker.name in ("mounts", "durability")),
        recoveries=(target.recovery(walk=True, fsck=False),),
        how=Exploration(),
        explainer=explanation,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / ".postcrash")
    yield opened
    opened.close()


def looping_in(function: str, folder: Path) -> MachineSettings:
    """Settings for guests whose kernel never returns from `function`."""
    kernel = mutant(folder, function, LOOP_FOREVER)
    return MachineSettings(kernel.path, guest_root(kernel, cache_folder()), command_timeout_s=TIMEOUT_S)


def test_a_kernel_whose_fsync_never_returns_is_a_finding(store: Store, tmp_path: Path) -> None:
    with TerminalProgress(1) as progress:
        looping = looping_in("ext4_sync_file", tmp_path)
        (result,) = run_campaign([plan_for(VICTIM)], Crew(looping, 1), store, progress)
    assert result.verdict is Verdict.VIOLATED
    assert {name for name, ruling in result.rulings.items() if ruling.verdict is Verdict.UNDECIDED} == {
        "mounts",
        "durability",
    }
    (finding,) = result.findings
    assert finding.checker == LOST_GUEST_JUDGE
    assert finding.message == f"in 'fsync A': the guest hangs: no answer within {TIMEOUT_S:.0f} s"
    assert finding.casualty is not None
    assert f"[<{address('ext4_sync_file'):08x}>]" in finding.casualty.stacks.splitlines()[1]
    assert "sysrq: Show Blocked State" in (store.folder / console_file(finding.casualty)).read_text()
    assert all(console_file(lost) in note for lost, note in zip(result.lost_guests, result.notes, strict=False))
    assert store.finding(finding.id) == finding
    told = postcrash(tmp_path, "explain", finding.id)
    assert told.returncode == 0, told.stderr
    assert "fsync A" in told.stdout and "in progress" in told.stdout and console_file(finding.casualty) in told.stdout
    assert "no crash state" in one_line(postcrash(tmp_path, "report", finding.id), ExitCode.USAGE)
    again = postcrash(tmp_path, "repro", finding.id, "--kernel", str(find_kernel().path))
    assert again.returncode == 0, again.stderr
    assert "the workload ran to its end" in again.stdout


def test_a_hunt_goes_on_after_workloads_that_hang(tmp_path: Path, store: Store) -> None:
    """The bug is in link(2). With a bug in fsync, with which every workload ends, no workload would be left."""
    synced = replace(NAMES, points=tuple(point for point in NAMES.points if point.word == "sync"))
    selection, plan = Selection(WorkloadSpace(synced, 1)), plan_for(VICTIM)
    with TerminalProgress(None) as progress:
        hunted = run_hunt(selection, {Probe.WALK: plan}, Crew(looping_in("ext4_link", tmp_path), 1), store, progress)
    (group,) = hunted.groups.values()
    assert (group.cause.checker, hunted.verdict) == (LOST_GUEST_JUDGE, Verdict.VIOLATED)
    assert group.cause.message == "in 'link PATH PATH': the guest hangs: no answer within N s"
    assert 0 < group.count < hunted.run
    assert hunted.counts["covered"] > 0


def kill_while_quiet(machine: Machine, folder: Path) -> None:
    """Kill the machine's guest once it records."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not any(folder.glob("*.pcr*")):
        time.sleep(0.01)
    time.sleep(0.5)
    os.kill(guest_of(machine), signal.SIGKILL)


def test_a_guest_that_is_lost_once_is_a_note(settings: MachineSettings, store: Store) -> None:
    with Machine(settings) as machine, TerminalProgress(1) as progress:
        threading.Thread(target=kill_while_quiet, args=(machine, store.folder / "recordings")).start()
        result = run_plan(plan_for(QUIET), lambda: machine, store, progress, fresh=False)
    assert (result.verdict, result.findings) == (Verdict.HOLDS, [])
    (note,) = result.notes
    assert note.startswith("in 'sleep 2': the guest's kernel")
    (lost,) = result.lost_guests
    assert console_file(lost) in note and (store.folder / console_file(lost)).is_file()


class Mortal(Machine):
    """A machine whose crash disk is killed when it is about to record, as often as `deaths` says."""

    deaths = 0

    def record(self, *arguments: Any, **options: Any) -> Workload:
        if Mortal.deaths:
            Mortal.deaths -= 1
            os.kill(self._process.pid, signal.SIGKILL)
        return super().record(*arguments, **options)


def test_a_campaign_goes_on_with_a_new_crash_disk(
    settings: MachineSettings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "Machine", Mortal)
    monkeypatch.setattr(Mortal, "deaths", 1)
    with TerminalProgress(2) as progress:
        first, second = run_campaign([plan_for(BUSY), plan_for(VICTIM)], Crew(settings, 1), store, progress)
    assert (first.verdict, second.verdict) == (Verdict.HOLDS, Verdict.HOLDS)
    assert "busy" in first.notes[0] and "crash disk" in first.notes[0]
    assert second.notes == []


def test_a_crash_disk_that_dies_twice_names_the_workload(
    settings: MachineSettings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "Machine", Mortal)
    monkeypatch.setattr(Mortal, "deaths", 2)
    with (
        TerminalProgress(1) as progress,
        pytest.raises(InfrastructureError, match="busy on ext4-current, tried twice: the crash disk process has ended"),
    ):
        run_campaign([plan_for(BUSY)], Crew(settings, 1), store, progress)


def work(machine: Machine, phase: str, folder: Path) -> None:
    """Boot, record or explore until something breaks."""
    if phase == "booting":
        machine.boot()
    workload = QUIET if phase == "recording" else BUSY
    with TerminalProgress(1) as progress:
        store = Store(folder / "store")
        while True:
            run_plan(plan_for(workload), lambda: machine, store, progress, fresh=True)


def wait_for_guest(machine: Machine) -> int:
    """The machine's guest, once it exists. Until then, the crash disk has only a watcher."""
    disk = machine._process.pid
    deadline = time.monotonic() + 30
    while len(Path(f"/proc/{disk}/task/{disk}/children").read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return guest_of(machine)


@pytest.mark.parametrize(
    ("phase", "after_s"), [("booting", 0.0), ("booting", 0.1), ("recording", 0.7), ("exploring", 1.0)]
)
def test_a_guest_ends_with_its_crash_disk(
    settings: MachineSettings, tmp_path: Path, phase: str, after_s: float
) -> None:
    machine = Machine(replace(settings, command_timeout_s=30))
    try:
        if phase != "booting":
            machine.boot()

        def until_it_breaks() -> None:
            with pytest.raises(InfrastructureError, match="the crash disk process has ended"):
                work(machine, phase, tmp_path)

        worker = threading.Thread(target=until_it_breaks)
        worker.start()
        guest = wait_for_guest(machine)
        time.sleep(after_s)
        assert running(guest)
        os.kill(machine._process.pid, signal.SIGKILL)
        worker.join(30)
        deadline = time.monotonic() + 5
        while running(guest) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not running(guest)
    finally:
        machine.close()
