"""The environment event `checkpoint`: metadata reaches its own place, and nothing stays frozen."""

import struct
from collections.abc import Callable

import pytest

from postcrash._core import Recording
from postcrash.harness.guests.kernels.file_systems import has_file_system
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.model import parse_workload
from postcrash.targets import TARGETS, Target

from .conftest import Record

LOGGED = "creat a\nappend a 4096\nfsync a\ncommit\n"
JBD2_SUPERBLOCK = struct.pack(">II", 0xC03B3998, 4)
F2FS_CHECKPOINTS = range(512 * 8, 3 * 512 * 8)
"""Sectors of the two segments with checkpoint packs, which follow the segment of the superblock."""


def is_ag_header(_sector: int, data: bytes) -> bool:
    """The header of an allocation group's free space or inodes, in place. In xfs' log the log's header precedes it."""
    return data[:4] in (b"XAGF", b"XAGI")


def is_checkpoint_pack(sector: int, _data: bytes) -> bool:
    """A checkpoint pack of f2fs."""
    return sector in F2FS_CHECKPOINTS


def is_empty_journal(_sector: int, data: bytes) -> bool:
    """jbd2's superblock with an s_start that says that the log is empty."""
    return data.startswith(JBD2_SUPERBLOCK) and data[28:32] == bytes(4)


ELSEWHERE = {"exfat", "ntfs3"}
"""File systems that Debian's user-mode Linux lacks."""
BROUGHT = {
    "xfs": is_ag_header,
    "f2fs": is_checkpoint_pack,
    "ext4-journal": is_empty_journal,
    "ext3-ordered": is_empty_journal,
}
"""For each target, a write that a checkpoint makes, and that no commit and no fsync makes."""


@pytest.mark.parametrize(("target", "brings"), BROUGHT.items())
def test_a_checkpoint_brings_what_a_commit_does_not(
    record: Record, target: str, brings: Callable[[int, bytes], bool]
) -> None:
    def found(text: str) -> bool:
        recording = Recording(record(target, parse_workload(text, "logged")).source.recording)
        events = recording.events()
        writes = [(number, event[2]) for number, event in enumerate(events) if event[0] == "write"]
        recorded = [(number, sector) for number, sector in writes if number > events.index(("durable",))]
        return any(brings(sector, recording.data(number)) for number, sector in recorded)

    assert not found(LOGGED)
    assert found(LOGGED + "checkpoint\n")


def test_only_these_are_missing_in_user_mode_linux() -> None:
    kernel = find_kernel()
    assert {target.fstype for target in TARGETS if not has_file_system(kernel, target.fstype)} == ELSEWHERE


FRESH = [target for target in TARGETS if target.aged_mib is None and target.fstype not in ELSEWHERE]


@pytest.mark.parametrize("target", FRESH, ids=lambda target: target.name)
def test_every_target_can_do_it_and_goes_on(record: Record, target: Target) -> None:
    again = "checkpoint\nappend a 100\nfsync a\ncheckpoint\ncheckpoint\ncreat b\nsync\n"
    workload = parse_workload(LOGGED + again, "goes-on")
    last = Recording(record(target, workload).source.recording).events()
    returned = [event[1:] for event in last if event[0] == "returned"]
    assert returned == [(number, 0) for number in range(len(workload.operations))]
