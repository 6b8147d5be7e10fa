"""One crash, made by hand: ext4 replaces A by B, and the crash keeps the rename but loses what was written to B."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.model import Verdict, pattern
from postcrash.properties.adversary import Adversary
from postcrash.properties.promises import Clause, Statements
from postcrash.reports.explanation.explanation import explain
from postcrash.store.records import Cell, Finding, finding_id, recording_id, state_id

WORKLOAD = "creat A\nappend A 4096\n---\ncreat B\nwrite B 0 5000\nrename B A\ncommit\nsync\n"
MESSAGE = "rename B A (operation 5): A is 5000 bytes long; of its bytes, 0 to 5000 are zero"
DISK_SECTORS = 4096

PROMISED = Statements(Clause("rule", "It is so.", "fs(5)"), None)
Event = tuple[Any, ...]
MakeCell = Callable[..., Cell]


def block(*parts: bytes) -> bytes:
    return b"".join(parts).ljust(4096, b"\0")


def jbd2(kind: int, sequence: int) -> bytes:
    return block(struct.pack(">III", 0xC03B3998, kind, sequence), b"tags")


METADATA = block(b"directory of inode 2")
DATA = block(pattern(1, 0, 5000)[:4096]) + block(pattern(1, 4096, 904))


def events() -> list[Event]:
    """The set-up is 0 to 6. Then come B's data (request 11) and the journal (12 and 13), with no flush between them."""
    setup = [("started", 0), ("returned", 0, 0), ("started", 1), ("returned", 1, 0)]
    return [
        *setup,
        ("write", 1, 800, block(pattern(0, 0, 4096)), False, False),
        ("complete", 1),
        ("durable",),
        ("started", 2),
        ("returned", 2, 0),
        ("started", 3),
        ("write", 10, 1600, jbd2(4, 7), False, False),
        ("complete", 10),
        ("flush", 14),
        ("complete", 14),
        ("returned", 3, 0),
        ("started", 4),
        ("returned", 4, 0),
        ("started", 5),
        ("write", 11, 1000, DATA, False, False),
        ("complete", 11),
        ("write", 12, 2000, jbd2(1, 8) + METADATA, False, False),
        ("complete", 12),
        ("write", 13, 2016, jbd2(2, 8), True, False),
        ("complete", 13),
        ("flush", 15),
        ("complete", 15),
        ("returned", 5, 0),
        ("zero", 16, 3000, 8, True),
        ("complete", 16),
    ]


NOTES: dict[int, list[Event]] = {
    7: [("call-begins", 1, "sh", 'openat("B", O_WRONLY|O_CREAT)'), ("call-ends", 1, 3)],
    17: [("call-begins", 1, "sh", 'rename("B", "A")'), ("call-ends", 1, 0)],
    18: [("call-begins", 1, "sh", "sync()"), ("call-begins", 2, "mv", 'unlink("no")'), ("call-ends", 2, -2)],
    26: [("call-ends", 1, 0)],
}
"""System calls by the number of the event before which they stand. The first ends before the epochs that are shown."""


@dataclass(frozen=True)
class StoredFinding:
    """A finding with the files that it refers to."""

    finding: Finding
    recording: Recording
    path: Path
    base: Path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.img"
    path.write_bytes(bytes(DISK_SECTORS * 512))
    return path


def observation(segments: list[list[Any]], size: int = 5000, klog: tuple[str, ...] = ()) -> dict[str, Any]:
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 3, "inode": 0, "size": 0}
    file = {"path": "A", "type": "file", "mode": 0o644, "nlink": 1, "inode": 1, "size": size, "segments": segments}
    return {"mount_errno": 0, "tree": [root, file], "klog": list(klog), "fsck": None}


@pytest.fixture
def calling(tmp_path: Path) -> Recording:
    """The recording of the crash, with system calls in it."""
    noted = [each for number, event in enumerate(events()) for each in (*NOTES.get(number, ()), event)]
    write_recording(tmp_path / "calling.pcr", DISK_SECTORS, "{}", noted)
    return Recording(tmp_path / "calling.pcr")


@pytest.fixture
def crash(tmp_path: Path, base: Path) -> StoredFinding:
    path = tmp_path / "made.pcr"
    write_recording(path, DISK_SECTORS, "{}", events())
    recording = Recording(path)
    interval = intervals(recording, base, "cache")[4]
    (component,) = [i for i, (sector, _, _) in enumerate(interval.components) if sector == 1000]
    assert (interval.started, interval.returned) == (6, 5)
    choices = ((component, 1), (component + 1, 1))
    finding = Finding(
        id=finding_id(("ext4-original", "UML 6.1.176", WORKLOAD, "cache", "P5", MESSAGE)),
        checker="P5",
        message=MESSAGE,
        target="ext4-original",
        kernel="UML 6.1.176",
        model="cache",
        workload_name="p5-replace",
        workload_text=WORKLOAD,
        recording=recording_id(recording.digest),
        base="b-0123456789abcdef",
        state=state_id(recording_id(recording.digest), interval.index, choices),
        interval=interval.index,
        choices=choices,
        lost=tuple(interval.lost(choices)),
        torn=interval.torn(choices),
        started=interval.started,
        returned=interval.returned,
        observation=observation([[0, 5000, "zero"]], klog=("<4>EXT4-fs warning (device ubdb): odd",)),
        casualty=None,
        recover={"mount": {"fstype": "ext4", "options": "noauto_da_alloc"}, "walk": True, "fsck": []},
    )
    finding = replace(finding, explanation=explain(finding, recording, base))
    return StoredFinding(finding, recording, path, base)


@pytest.fixture
def make_cell() -> MakeCell:
    return cell


def cell(target: str = "ext4-current", prop: str = "P1", verdict: Verdict = Verdict.HOLDS, **changes: Any) -> Cell:
    made = Cell(
        target=target,
        property=prop,
        verdict=verdict,
        states=2**70,
        recoveries=14,
        outcomes=9,
        workloads=12,
        relevant=3,
        witness=None,
        reason="",
        kernel="UML 6.1.176",
        model="cache",
        statements=PROMISED,
        adversary=Adversary.PLAIN,
    )
    return replace(made, **changes)
