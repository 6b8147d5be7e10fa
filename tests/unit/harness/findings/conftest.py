"""A finding in a real store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.harness.examination.session import Session
from postcrash.store.records import Finding, recording_id, state_id

SECTORS = 4096
WORKLOAD = "---\ncreat a\nsync\n"
BASE = "b-0123456789abcdef"
EVENTS: list[tuple[Any, ...]] = [
    *(("durable",), ("started", 0), ("returned", 0, 0), ("started", 1)),
    *(("write", 1, 800, b"\x01" * 4096, False, False), ("complete", 1), ("returned", 1, 0)),
]
TREE = [{"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}]


@pytest.fixture
def make_finding(tmp_path: Path) -> Callable[..., tuple[Finding, Session]]:
    """A finding on a target, which lost the only write, and a session. If it `is_recorded`, the store has it all.

    The sync is in progress, and the recording also has the instant after it.
    """

    def made(target: str, *, is_recorded: bool = True) -> tuple[Finding, Session]:
        session = Session(tmp_path / "store")
        store = session.store
        base = tmp_path / "base.img"
        base.write_bytes(bytes(SECTORS * 512))
        path = store.scratch()
        write_recording(path, SECTORS, "{}", EVENTS)
        recording = Recording(path)
        id = recording_id(recording.digest)
        last = intervals(recording, base, "cache")[-1]
        if is_recorded:
            store.adopt_recording(path, id)
            store.keep_base(base, BASE)
        choices = ((0, 1),)
        finding = Finding(
            id="f-0123456789abcdef",
            checker="durability",
            message="a is not there",
            target=target,
            kernel="UML 6.1.176",
            model="cache",
            workload_name="w",
            workload_text=WORKLOAD,
            recording=id,
            base=BASE,
            state=state_id(id, last.index, choices),
            interval=last.index,
            choices=choices,
            lost=(0,),
            torn=0,
            started=2,
            returned=1,
            observation={"mount_errno": 0, "tree": TREE, "klog": [], "fsck": None},
            casualty=None,
            recover={"mount": {"fstype": "ext4", "options": ""}, "walk": True, "fsck": []},
        )
        return finding, session

    return made
