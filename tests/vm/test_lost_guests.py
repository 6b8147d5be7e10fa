"""A guest that dies or hangs is noticed, kept as evidence and replaced. No crash state is left out."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.events import ExplorationEvent, LostGuest, ProgressEvent
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import Workload, WorkloadBuilder
from postcrash.model.operation import RUN, Operation
from postcrash.targets import base_image, target_named

from .conftest import Record, RecordedWorkload, intervals_of

TIMEOUT_S = 3.0
WORKLOAD = WorkloadBuilder().begin().creat("A").write("A", 0, 12288).fsync("A").build("victim")


def guest_of(machine: Machine) -> int:
    """Process id of a machine's guest. The guest was started after its watcher."""
    disk = machine._process.pid
    children = Path(f"/proc/{disk}/task/{disk}/children").read_text().split()
    return int(children[-1])


@pytest.fixture
def fragile(settings: MachineSettings) -> Iterator[Machine]:
    """A machine of its own that gives up on a silent guest early."""
    with Machine(replace(settings, command_timeout_s=TIMEOUT_S)) as machine:
        yield machine


def explore(machine: Machine, recorded: RecordedWorkload) -> Iterator[ExplorationEvent]:
    """Explore by brute force, which takes hundreds of recoveries."""
    return machine.explore(recorded.source, recorded.recover(), Budget(400), recheck_share=0.0, brute_force=True)


def explore_while(machine: Machine, recorded: RecordedWorkload, disturb: int) -> list[ExplorationEvent]:
    """Explore, and send the guest the signal `disturb` once recoveries are under way."""
    events: list[ExplorationEvent] = []
    disturbed = False
    for event in explore(machine, recorded):
        events.append(event)
        if isinstance(event, ProgressEvent) and not disturbed:
            disturbed = True
            os.kill(guest_of(machine), disturb)
    assert disturbed
    return events


@pytest.mark.parametrize(("disturb", "what"), [(signal.SIGKILL, "died"), (signal.SIGSTOP, "hangs")])
def test_a_lost_guest_is_replaced_and_its_state_run_again(
    fragile: Machine, record: Record, disturb: int, what: str
) -> None:
    recorded = record("ext4-journal", WORKLOAD)
    undisturbed = list(explore(fragile, recorded))
    started = time.monotonic()
    events = explore_while(fragile, recorded, disturb)
    lost = [event for event in events if isinstance(event, LostGuest)]
    assert len(lost) == 1
    assert what in lost[0].what or "closed its disk" in lost[0].what
    assert intervals_of(events) == intervals_of(undisturbed)
    assert time.monotonic() - started < 60


def test_a_guest_that_cannot_boot_is_one_clear_error(settings: MachineSettings, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel"
    kernel.write_text("#!/bin/sh\necho no kernel here\n")
    kernel.chmod(0o755)
    with pytest.raises(InfrastructureError, match="died") as raised, Machine(replace(settings, kernel=kernel)):
        pass
    assert "no kernel here" in raised.value.evidence


def test_closing_a_machine_ends_a_request_in_progress(fragile: Machine, record: Record) -> None:
    recorded = record("ext4-journal", WORKLOAD)
    guest = guest_of(fragile)
    threading.Timer(0.3, fragile.close).start()
    with pytest.raises(InfrastructureError, match="ended"):
        explore_for_ever(fragile, recorded)
    time.sleep(0.5)
    assert not running(guest)


def explore_for_ever(machine: Machine, recorded: RecordedWorkload) -> None:
    """Explore until something breaks."""
    while True:
        list(machine.explore(recorded.source, recorded.recover(), Budget()))


def running(pid: int) -> bool:
    """Whether any process of the group `pid` runs. A process that waits to be reaped does not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rpartition(") ")[2].split()[:3]
        except OSError:
            continue
        if int(group) == pid and state != "Z":
            return True
    return False


COVERS = (
    "import ctypes, os; libc = ctypes.CDLL(None); libc.setns(os.open('/proc/1/ns/mnt', 0), 0);"
    "libc.mount(b'cover', b'/mnt', b'tmpfs', 0, None)"
)


def test_a_file_system_that_stays_mounted_is_said(settings: MachineSettings, tmp_path: Path) -> None:
    """The next run would show its files. What the program mounts over it is what the agent unmounts."""
    target = target_named("ext4-current")
    base = base_image(target, cache_folder() / "bases")
    workload = Workload("covers", (), (Operation(RUN, value=f'python3 -c "{COVERS}"', seconds=30),))
    with Machine(settings) as machine, pytest.raises(InfrastructureError, match="is still mounted somewhere"):
        machine.record(base.path, target.mount, workload, tmp_path / "recording.pcr", {})
