"""The program that serves a mount ends by itself when the target is unmounted, or the guest says otherwise.

What it says is told if it refuses, or if something fails. It may be a script, and serve the mount in the foreground.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.errors import HarnessError, InfrastructureError, OperationFailedError, UsageError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import cached_root, guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import WorkloadBuilder
from postcrash.targets import TARGETS, Target, target_named

from .conftest import Record, recording_in, root_files

SERVED = "fuse2fs"
UNWINDER = "libgcc_s.so.1"
SCRIPT = """#!/bin/sh
kind=$1
shift
case $kind in
    refuses) echo "myfs: bad magic on $1" >&2; exit 3 ;;
    nothing) exit 0 ;;
    serves) echo "myfs: here is $1" >&2; exec /usr/bin/fuse2fs -f "$@" ;;
esac
"""


def test_what_the_program_writes_when_it_ends_is_there_for_fsck(machine: Machine, record: Record) -> None:
    recorded = record(SERVED, WorkloadBuilder().begin().mkdir("D").build("w").with_tail())
    recover = recorded.target.recovery(walk=False, fsck=True)
    assert machine.execute(recorded.source, 0, [], recover).observation["fsck"] == {"status": 0, "output": ""}


@pytest.fixture
def without_unwinder() -> MachineSettings:
    """Guests in which fuse2fs is aborted when it ends its threads."""
    kernel = find_kernel()
    files = root_files(kernel)
    kept = {place: content for place, content in files.items() if place.name != UNWINDER}
    assert len(kept) < len(files)
    return MachineSettings(kernel.path, cached_root(kept, cache_folder()))


def test_what_is_there_after_another_mount_says_whether_a_tree_can_be_used(
    without_unwinder: MachineSettings, record: Record
) -> None:
    recorded = record(SERVED, WorkloadBuilder().begin().mkdir("D").build("w").with_tail())
    recover = recorded.target.recovery(walk=False, fsck=False, use=True)
    with Machine(without_unwinder) as broken:
        assert broken.execute(recorded.source, 0, [], recover).observation["used"] == {"failed": "", "errno": 0}


def test_a_program_that_is_killed_at_the_unmount_is_not_passed_over(
    without_unwinder: MachineSettings, record: Record
) -> None:
    recorded = record(SERVED, WorkloadBuilder().begin().mkdir("D").build("w").with_tail())
    said = "fsck of the base image exits with status 134: signal 6 ended the program that served the mount"
    with Machine(without_unwinder) as broken, pytest.raises(HarnessError, match=said):
        broken.execute(recorded.source, 0, [], recorded.target.recovery(walk=False, fsck=True))


@pytest.fixture(scope="module")
def by_script(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Target]:
    """A target whose helper is a script that does as it is told."""
    script = tmp_path_factory.mktemp("helper") / "myfs"
    script.write_text(SCRIPT)
    return lambda kind: replace(target_named(SERVED), name=kind, helper=(str(script), kind))


@pytest.fixture(scope="module")
def with_script(by_script: Callable[[str], Target]) -> Iterator[Machine]:
    """A guest that has the script."""
    kernel = find_kernel()
    root = guest_root(kernel, cache_folder(), (*TARGETS, by_script("any")))
    with Machine(MachineSettings(kernel.path, root)) as booted:
        yield booted


WORKLOAD = WorkloadBuilder().begin().mkdir("D").build("w").with_tail()


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("refuses", "it ends with status 3: myfs: bad magic on /dev/vda"),
        ("nothing", "it ends and has not mounted anything"),
    ],
)
def test_a_helper_that_does_not_mount_is_told_with_what_it_said(
    with_script: Machine, by_script: Callable[[str], Target], tmp_path: Path, kind: str, how: str
) -> None:
    target, served = by_script(kind), recording_in(tmp_path, with_script)(by_script("serves"), WORKLOAD)
    with pytest.raises(InfrastructureError) as raised:
        recording_in(tmp_path, with_script)(target, WORKLOAD)
    assert str(raised.value) == f"fuse does not mount: {target.helper[0]}: {how}"
    assert ("bad magic" in how) == ("output of the helper:\nmyfs: bad magic" in raised.value.evidence)
    told = rf"the base image does not mount \(errno 5\); {target.helper[0]}: {how}; kernel log"
    with pytest.raises(UsageError, match=told):
        with_script.execute(served.source, 0, [], target.recovery(walk=True, fsck=False))


def test_an_operation_that_fails_is_told_with_what_the_helper_said(
    with_script: Machine, by_script: Callable[[str], Target], tmp_path: Path
) -> None:
    workload = WorkloadBuilder().creat("A").creat("B").begin().exchange("A", "B").build("w")
    with pytest.raises(OperationFailedError) as raised:
        recording_in(tmp_path, with_script)(by_script("serves"), workload)
    assert str(raised.value).endswith("with EINVAL on fuse: the helper says: myfs: here is /dev/vda")
    assert "output of the helper:\nmyfs: here is /dev/vda" in raised.value.evidence
