"""Stories from a real store: with the recording everything is told, without it what the finding has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.harness.findings.told import told
from postcrash.harness.session import Session
from postcrash.reports.store.records import Finding, recording_id, state_id

SECTORS = 4096
WORKLOAD = "---\ncreat a\nsync\n"
BASE = "b-0123456789abcdef"
EVENTS: list[tuple[Any, ...]] = [
    *(("durable",), ("started", 0), ("returned", 0, 0), ("started", 1)),
    *(("write", 1, 800, b"\x01" * 4096, False, False), ("complete", 1)),
]
TREE = [{"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}]


@pytest.fixture
def make_finding(tmp_path: Path) -> Callable[..., tuple[Finding, Session]]:
    """A finding on a target, which lost the only write, and a session. If it `is_recorded`, the store has it all."""

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


def test_all_is_told_of_a_target_of_the_catalogue(make_finding: Callable[..., tuple[Finding, Session]]) -> None:
    finding, session = make_finding("ext4-current")
    (story,) = told([finding], session)
    assert story.finding.explanation is not None and story.timeline is not None
    assert len(story.timeline.writes[0]) == len(story.finding.explanation.epochs[0].writes) == 1
    assert story.script.startswith("#!/bin/bash\n# ext4-current, durability: a is not there\n")
    assert story.no_script == ""


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("my-own", "nobody knows the target my-own any more"),
        ("fuse2fs", "fuse is mounted by a program, /usr/bin/fuse2fs, not by the kernel"),
    ],
)
def test_without_a_script_it_says_why(
    make_finding: Callable[..., tuple[Finding, Session]], target: str, why: str
) -> None:
    finding, session = make_finding(target)
    (story,) = told([finding], session)
    assert story.timeline is not None and story.finding.explanation is not None
    assert (story.script, story.no_script) == ("", why)


def test_without_its_recording_a_finding_stays_as_it_is(make_finding: Callable[..., tuple[Finding, Session]]) -> None:
    finding, session = make_finding("ext4-current", is_recorded=False)
    (story,) = told([finding], session)
    assert (story.finding, story.timeline, story.script) == (finding, None, "")
