"""The program that serves a mount ends by itself when the target is unmounted, or the guest says otherwise."""

import pytest

from postcrash.harness.errors import HarnessError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import cached_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import WorkloadBuilder

from .conftest import Record, root_files

SERVED = "fuse2fs"
UNWINDER = "libgcc_s.so.1"


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
