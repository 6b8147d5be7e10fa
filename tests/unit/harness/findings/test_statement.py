"""What the judge of a finding expects, in prose."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from postcrash.harness.examination.session import Session
from postcrash.harness.findings.statement import statement_of
from postcrash.store.records import Finding


@pytest.mark.parametrize(
    ("checker", "said"),
    [
        ("same-as:kernel:6.1", "Every state that a crash leaves is one that it can leave on kernel:6.1, too."),
        ("durability", "What a returned fsync"),
        ("fsync-names", "A file or directory is found under each name"),
        ("P5", "If a file A exists"),
        ("same-recovery", "Recovery comes to an end"),
    ],
)
def test_each_judge_has_one(make_finding: Callable[..., tuple[Finding, Session]], checker: str, said: str) -> None:
    finding, _ = make_finding("ext4-current")
    assert statement_of(replace(finding, checker=checker)).startswith(said)
