"""Aged base images are nearly full of files that nobody sees, and nothing in them looks like a workload's bytes."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals
from postcrash.checkers.mounts import Mounts
from postcrash.harness.errors import UsageError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.aged import aged_image
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import History, Observation, Workload, WorkloadBuilder, simulate
from postcrash.model.pattern import stale
from postcrash.targets import base_image, target_named

from .conftest import reading

KERNEL = "the kernel of this test"


def written_areas(recording: Recording) -> int:
    """How many separate areas of the disk are written. A busy machine splits writes, and leaves no gaps between."""
    writes = (event[2:4] for event in recording.events() if event[0] == "write")
    sectors = {first + number for first, count in writes for number in range(count)}
    return sum(sector - 1 not in sectors for sector in sectors)


def test_what_is_written_goes_between_old_files(machine: Machine, settings: MachineSettings, tmp_path: Path) -> None:
    target, out = target_named("ext4-full"), tmp_path / "recording"
    fresh = base_image(target, cache_folder() / "bases")
    aged = aged_image(target, fresh, settings, KERNEL, tmp_path)
    assert aged == aged_image(target, fresh, settings, KERNEL, tmp_path)
    workload, areas = WorkloadBuilder().begin().creat("A").append("A", 3 << 20).sync().build("fits"), []
    for base in (fresh, aged):
        machine.record(base.path, target.mount, workload, out, {})
        areas.append(written_areas(Recording(out)))
    assert areas[1] > areas[0] + 9, "gaps are of 100 KiB"
    source = Source(out, aged.path, "cache")
    last = intervals(Recording(out), aged.path, "cache")[-1].index
    shown = Observation.from_wire(machine.execute(source, last, [], reading(target)).observation)
    assert list(shown.tree.paths()) == [".", "A"]
    assert shown.tree["A"].segments == simulate(workload)[-1]["A"].segments
    too_much = WorkloadBuilder().begin().creat("A").append("A", 6 << 20).sync().build("too-much")
    with pytest.raises(UsageError, match="ENOSPC"):
        machine.record(aged.path, target.mount, too_much, out, {})


@pytest.mark.parametrize(
    ("command", "damage"),
    [
        ("show_inode_info .aged/1", ""),
        ("set_inode_field .aged/1 size 0", ".aged/1 has 0 bytes, not 409600"),
        ("set_inode_field .aged/1 blocks 8", ".aged/1 has blocks for 4096 of its 409600 bytes"),
        ("unlink .aged/47", ".aged/47 is gone"),
        ("link .aged/2 .aged/0", ".aged/0 is there, but nobody made it"),
        ("set_inode_field .aged/5 links_count 2", ".aged/5 is not a file with one name"),
        ("unlink .aged", ".aged cannot be read: No such file or directory (os error 2)"),
    ],
)
def test_damage_to_the_old_files_is_seen(
    command: str, damage: str, machine: Machine, settings: MachineSettings, tmp_path: Path
) -> None:
    target, out, damaged = target_named("ext4-full"), tmp_path / "recording", tmp_path / "damaged"
    aged = aged_image(target, base_image(target, cache_folder() / "bases"), settings, KERNEL, tmp_path)
    shutil.copyfile(aged.path, damaged)
    subprocess.run(["/usr/sbin/e2fsck", "-p", damaged], check=False, capture_output=True)
    subprocess.run(["/usr/sbin/debugfs", "-w", "-R", command, damaged], check=True, capture_output=True)
    machine.record(damaged, target.mount, WorkloadBuilder().begin().creat("A").build("w"), out, {})
    shown = machine.execute(Source(out, damaged, "cache"), 0, [], reading(target)).observation
    observation = Observation.from_wire(shown)
    assert observation.aged == damage
    opinion = Mounts().check(History(Workload("w", (), ()), 0, 0), observation)
    assert opinion.message == (damage and f"of the files that aged the image, {damage}")


def test_what_the_old_files_held_is_garbage(settings: MachineSettings, tmp_path: Path) -> None:
    target = target_named("ext4-full")
    fresh = base_image(target, cache_folder() / "bases")
    aged = aged_image(target, fresh, settings, KERNEL, tmp_path)
    images = [image.path.read_bytes() for image in (fresh, aged)]
    blocks = range(0, len(images[0]), 4096)
    garbage = [sum(image[at : at + 4096] == stale(at // 4096, 4096) for at in blocks) for image in images]
    assert garbage[0] > 4800
    assert garbage[0] - garbage[1] < 200, "the journal and what names the old files"


def test_files_that_do_not_fit_are_one_clear_error(settings: MachineSettings, tmp_path: Path) -> None:
    target = replace(target_named("ext4-full"), aged_mib=100)
    with pytest.raises(UsageError, match=r"ext4-full: aged_mib = 100 cannot be: .*ENOSPC"):
        aged_image(target, base_image(target, cache_folder() / "bases"), settings, KERNEL, tmp_path)
