"""Stories from a real store: with the recording everything is told, without it what the finding has."""

from collections.abc import Callable

import pytest

from postcrash.harness.examination.session import Session
from postcrash.harness.findings.finding_details import told
from postcrash.store.records import Finding


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


def test_a_damaged_recording_is_as_one_that_is_not_there(make_finding: Callable[..., tuple[Finding, Session]]) -> None:
    """The other findings of a report are still told."""
    finding, session = make_finding("ext4-current")
    session.store.recording_path(finding.recording).write_bytes(b"damaged")
    (story,) = told([finding], session)
    assert (story.finding, story.timeline, story.script) == (finding, None, "")
