"""Details of findings in a real store: with the recording all of them, without it what the finding has."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.findings.finding_details import stories_of, with_block_names
from postcrash.store.records import Finding

MakeFinding = Callable[..., tuple[Finding, Session]]


def test_all_is_told_of_a_target_of_the_catalogue(make_finding: MakeFinding) -> None:
    finding, session = make_finding("ext4-current")
    (story,) = stories_of([finding], session)
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
def test_without_a_script_it_says_why(make_finding: MakeFinding, target: str, why: str) -> None:
    finding, session = make_finding(target)
    (story,) = stories_of([finding], session)
    assert story.timeline is not None and story.finding.explanation is not None
    assert (story.script, story.no_script) == ("", why)


def test_without_its_recording_a_finding_stays_as_it_is(make_finding: MakeFinding) -> None:
    finding, session = make_finding("ext4-current", is_recorded=False)
    (story,) = stories_of([finding], session)
    assert (story.finding, story.timeline, story.script) == (finding, None, "")


def test_a_damaged_recording_is_as_one_that_is_not_there(make_finding: MakeFinding) -> None:
    """The other findings of a report are still told."""
    finding, session = make_finding("ext4-current")
    session.store.recording_path(finding.recording).write_bytes(b"damaged")
    (story,) = stories_of([finding], session)
    assert (story.finding, story.timeline, story.script) == (finding, None, "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "absent"}, "unknown device model 'absent'"),
        ({"interval": 99}, "crash interval 99: this recording has only"),
        ({"choices": ((7, 1),)}, "component 7 has no version 1"),
        ({"choices": ((0, 1), (0, 0))}, "component 0 is chosen twice"),
        ({"started": 9}, "no instant at which 9 operations had started"),
        ({"workload_text": "create a\n"}, "w:1:1: expected an operation"),
        ({"workload_text": "---\nunlink a\nsync\n"}, "unlink a"),
    ],
)
def test_a_finding_that_does_not_fit_its_recording(
    make_finding: MakeFinding, changes: dict[str, Any], words: str
) -> None:
    finding, session = make_finding("ext4-current")
    with pytest.raises(UsageError) as caught:
        with_block_names([replace(finding, **changes)], session.store)
    assert str(caught.value).startswith(f"{finding.id} does not fit {finding.recording}: ")
    assert words in str(caught.value)


def test_a_finding_whose_recording_is_gone_stays_as_it_is(make_finding: MakeFinding) -> None:
    finding, session = make_finding("ext4-current", is_recorded=False)
    assert with_block_names([finding], session.store) == [finding]


def test_a_finding_that_fits_is_explained(make_finding: MakeFinding) -> None:
    finding, session = make_finding("ext4-current")
    (found,) = with_block_names([finding], session.store)
    assert found.explanation is not None and len(found.explanation.lost) == 1
