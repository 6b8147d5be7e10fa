"""A guest whose clock jumps ahead while it is idle. Such a guest never rests, so no other tests stand in this file."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import Kernel, in_virtual_time
from postcrash.harness.guests.machine import Machine
from postcrash.model import WorkloadBuilder

from .conftest import explored, intervals_of, trees_of
from .test_engines import all_outcomes, recorded_by


@pytest.fixture(scope="module")
def virtual(image: Kernel) -> Iterator[Machine]:
    """A guest whose clock jumps ahead while it is idle."""
    kernel = in_virtual_time(image)
    assert kernel.label == f"QEMU/TCG (virtual time) {image.version}"
    with Machine(settings_for(kernel, guest_root(kernel, cache_folder()))) as booted:
        yield booted


def test_virtual_time_changes_no_outcome(virtual: Machine, machine: Machine, tmp_path: Path) -> None:
    workload = (
        WorkloadBuilder().begin().creat("A").write("A", 0, 12288).fsync("A").build("w").with_tail(checkpoint=False)
    )
    recorded = recorded_by(machine, "ext4-original", workload, tmp_path / "recording.pcr")
    by_virtual, by_uml = (intervals_of(explored(each, recorded)) for each in (virtual, machine))
    assert sum(len(interval.outcomes) for interval in by_uml) > len(by_uml)
    assert all_outcomes(by_virtual) == all_outcomes(by_uml)


def test_in_virtual_time_sleep_is_cheap_and_timers_fire(virtual: Machine, machine: Machine, tmp_path: Path) -> None:
    seconds, last, naps = [], [], (40, 600)
    for sleeps in ((), naps):
        builder = WorkloadBuilder().begin().creat("a").append("a", 4096)
        for sleep in sleeps:
            builder.sleep(sleep)
        started = time.monotonic()
        recorded = recorded_by(virtual, "ext4-current", builder.build("sleep"), tmp_path / "recording.pcr")
        seconds.append(time.monotonic() - started)
        last.append(intervals_of(explored(machine, recorded))[-1])
    assert seconds[1] < sum(naps), "less than was slept, however busy the machine is"
    assert all(interval.instants[-1].started == interval.instants[-1].returned for interval in last)
    assert [{tree.get("a") is not None for tree in trees_of(interval)} for interval in last] == [{False}, {True}]
    for tree in trees_of(last[1]):
        (segment,) = tree["a"].segments
        assert (segment.start, segment.end, str(segment.source)) == (0, 4096, "write:0")
