"""What a report says of how many crash states break a judge, and what the number rests on."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from postcrash.harness.examination.session import Session
from postcrash.harness.examination.violation_count import StateCount
from postcrash.harness.findings import violating_states as module
from postcrash.harness.findings.violating_states import NOT_COUNTED, TOO_MANY, violating_states
from postcrash.store.records import Finding

MakeFinding = Callable[..., tuple[Finding, Session]]


def told(made: tuple[Finding, Session], counted: StateCount | None, monkeypatch: pytest.MonkeyPatch) -> str:
    finding, session = made
    run = SimpleNamespace(findings=("f-0123456789abcdef",), read_certificates=list)
    monkeypatch.setattr(module, "certified_runs", lambda _: [run])
    monkeypatch.setattr(module, "violating", lambda *_: counted)
    return violating_states(session.store, finding)


def test_states_are_covered_and_only_some_of_them_recovered(
    make_finding: MakeFinding, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = told(make_finding("ext4-current"), StateCount(2**32 + 3, 2**32 + 65561, 1234), monkeypatch)
    assert said.startswith(
        "4294967299 of the 4295032857 crash states that were covered break durability. They were covered by 1234 "
        "recoveries on the kernel named above: one recovery stands for all states that agree"
    )
    assert "by 1 recovery on" in told(make_finding("ext4-current"), StateCount(1, 1, 1), monkeypatch)


def test_what_was_not_counted_is_said(make_finding: MakeFinding, monkeypatch: pytest.MonkeyPatch) -> None:
    finding, session = make_finding("ext4-current")
    assert told((finding, session), None, monkeypatch) == TOO_MANY
    compared = replace(finding, checker="same-as:kernel:6.1")
    assert told((compared, session), StateCount(1, 1, 1), monkeypatch) == NOT_COUNTED
