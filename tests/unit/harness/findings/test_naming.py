"""Findings are named from their recordings; one that does not fit its recording is told with what is wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.findings.naming import named
from postcrash.store.records import Finding

MakeFinding = Callable[..., tuple[Finding, Session]]


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
        named([replace(finding, **changes)], session.store)
    assert str(caught.value).startswith(f"{finding.id} does not fit {finding.recording}: ")
    assert words in str(caught.value)


def test_a_finding_whose_recording_is_gone_stays_as_it_is(make_finding: MakeFinding) -> None:
    finding, session = make_finding("ext4-current", is_recorded=False)
    assert named([finding], session.store) == [finding]


def test_a_finding_that_fits_is_explained(make_finding: MakeFinding) -> None:
    finding, session = make_finding("ext4-current")
    (found,) = named([finding], session.store)
    assert found.explanation is not None and len(found.explanation.lost) == 1
