"""A mount that fails says why in one line, and has the modules that its options need."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.machine import Machine
from postcrash.model import WorkloadBuilder
from postcrash.targets import Target, base_image, target_named

WORKLOAD = WorkloadBuilder().begin().creat("A").append("A", 4096).fsync("A").build("short")
EXT4 = target_named("ext4-current")


def record(machine: Machine, target: Target, folder: Path) -> None:
    base = base_image(target, folder)
    machine.record(base.path, target.mount, WORKLOAD, folder / "recording", {})


def with_features(features: str) -> Target:
    return replace(EXT4, mkfs=(*EXT4.mkfs, "-O", features))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            replace(EXT4, options="lazytime,colour=red"),
            "ext4 does not mount with lazytime,colour=red: Invalid argument: the kernel says: "
            "ext4: Unknown parameter 'colour'",
        ),
        (
            replace(target_named("xfs"), options="logbsize=7"),
            "xfs does not mount with logbsize=7: Invalid argument: the kernel says: XFS (vda): invalid logbufsize: 7 "
            "[not 16k,32k,64k,128k or 256k]",
        ),
        (
            with_features("casefold"),
            "ext4 does not mount: Invalid argument: the kernel says: EXT4-fs (vda): Filesystem with casefold feature "
            "cannot be mounted without CONFIG_UNICODE",
        ),
        (
            replace(target_named("vfat"), options="iocharset=no-such"),
            "vfat does not mount with iocharset=no-such: Invalid argument: the kernel says: FAT-fs (vda): IO charset "
            "no-such not found: the guest does not have what the kernel asks for: nls_no-such",
        ),
    ],
    ids=["option", "value", "configuration", "module"],
)
def test_a_mount_that_fails_says_what_the_kernel_says(
    machine: Machine, tmp_path: Path, target: Target, said: str
) -> None:
    with pytest.raises(InfrastructureError) as raised:
        record(machine, target, tmp_path)
    assert str(raised.value) == said


def test_the_kernel_gets_the_modules_that_it_asks_for(machine: Machine, tmp_path: Path) -> None:
    record(machine, with_features("quota,project"), tmp_path)
