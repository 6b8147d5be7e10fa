"""What mkfs and the harness put into the root is left out of trees, as long as it is as they made it."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import Observation, WorkloadBuilder
from postcrash.targets import base_image, target_named

WORKLOAD = WorkloadBuilder().begin().creat("A").build("w")


def observed(
    machine: Machine, folder: Path, *commands: str, name: str = "ext4-current", is_repaired: bool = False
) -> Observation:
    """What is there where the recording of a workload begins, on an image that debugfs has changed."""
    target, image, out = target_named(name), folder / "image", folder / "recording"
    shutil.copyfile(base_image(target, cache_folder() / "bases").path, image)
    for command in commands:
        subprocess.run(["/usr/sbin/debugfs", "-w", "-R", command, image], check=True, capture_output=True)
    machine.record(image, target.mount, WORKLOAD, out, {})
    kind = target.recovery(walk=True, fsck=False, repair=is_repaired).by_kernel()
    recover = kind if is_repaired else replace(kind, bytes=True)
    return Observation.from_wire(machine.execute(Source(out, image, "cache"), 0, [], recover).observation)


@pytest.mark.parametrize("is_repaired", [False, True])
def test_what_is_put_into_lost_and_found_is_seen(machine: Machine, tmp_path: Path, is_repaired: bool) -> None:
    """fsck puts files there, and so can programs. A file in it does not change the number of its links."""
    shown = observed(machine, tmp_path, "write /etc/hostname lost+found/file", is_repaired=is_repaired)
    assert {"lost+found", "lost+found/file"} < set(shown.tree.paths())
    assert "lost+found" not in shown.unlisted


def test_another_lost_and_found_than_that_of_mkfs_is_seen(machine: Machine, tmp_path: Path) -> None:
    shown = observed(machine, tmp_path, "mkdir other", "rmdir lost+found", "mkdir placeholder", "mkdir lost+found")
    assert "lost+found" in shown.tree
    assert "lost+found" not in shown.unlisted


@pytest.mark.parametrize("name", ["ext4-current", "xfs", "btrfs", "f2fs"])
def test_what_is_as_it_was_made_is_left_out(machine: Machine, tmp_path: Path, name: str) -> None:
    shown = observed(machine, tmp_path, name=name)
    assert list(shown.tree.paths()) == ["."]
    assert set(shown.unlisted) == {".postcrash", *(["lost+found"] if name == "ext4-current" else [])}
