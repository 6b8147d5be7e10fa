"""Cells, findings and ids are written as JSON and text and read back the same. Anything else is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import Verdict
from postcrash.store.consoles import Casualty
from postcrash.store.json_codec import PlainError
from postcrash.store.records import (
    Cell,
    Finding,
    IdError,
    check_finding_id,
    finding_id,
    parse_state_id,
    recording_id,
    state_id,
)

RECORDING = "r-0123456789abcdef"


def test_a_cell_is_exactly_this_json(make_cell: Callable[..., Cell]) -> None:
    cell = make_cell("btrfs", "P1", Verdict.VIOLATED, witness="f-0123456789abcdef", reason="why")
    assert cell.to_json() == {
        "target": "btrfs",
        "property": "P1",
        "verdict": "violated",
        "states": "1180591620717411303424",
        "recoveries": 14,
        "outcomes": 9,
        "workloads": 12,
        "adversary": "plain",
        "relevant": 3,
        "witness": "f-0123456789abcdef",
        "reason": "why",
        "kernel": "UML 6.1.176",
        "model": "cache",
        "promise": {"rule": "rule", "statement": "It is so.", "source": "fs(5)"},
        "denial": None,
        "standing": "broken",
        "guest": "",
    }


def test_a_cell_comes_back(make_cell: Callable[..., Cell]) -> None:
    cell = make_cell(verdict=Verdict.UNDECIDED)
    back = Cell.from_json(json.loads(json.dumps(cell.to_json())))
    assert back == cell
    assert back.verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "passed"}, "cell.verdict: expected one of holds, undecided, violated, found 'passed'"),
        ({"states": 12}, "cell.states: expected a decimal number in quotes, found 12"),
        ({"states": "-1"}, "cell.states: expected a decimal number in quotes, found '-1'"),
        ({"states": "9" * 320_001}, "cell.states: expected a decimal number in quotes, found '9999"),
        ({"recoveries": True}, "cell.recoveries: expected an integer, found True"),
        ({"witness": 3}, "cell.witness: expected text, found 3"),
        ({"standing": "provided"}, "cell.standing: expected kept, found 'provided'"),
        ({"promise": {}}, "cell.statements.promise: expected the fields rule, statement, source, found []"),
        ({"extra": 3}, "cell: expected the fields target, property"),
    ],
)
def test_a_damaged_cell_is_refused(make_cell: Callable[..., Cell], change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlainError) as caught:
        Cell.from_json({**make_cell().to_json(), **change})
    assert str(caught.value).startswith(message)


def test_a_cell_is_an_object() -> None:
    with pytest.raises(PlainError, match="cell: expected an object, found 3"):
        Cell.from_json(3)


def test_a_finding_comes_back(crash: Any) -> None:
    finding = crash.finding
    assert finding.explanation is not None
    assert Finding.from_json(json.loads(json.dumps(finding.to_json()))) == finding


def test_a_finding_without_an_explanation_comes_back(crash: Any) -> None:
    finding = replace(crash.finding, explanation=None, observation=None, casualty=Casualty("panic", "…"))
    assert Finding.from_json(json.loads(json.dumps(finding.to_json()))) == finding


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choices": [[0, 1], [2]]}, "finding.choices[1]: expected 2 items, found [2]"),
        ({"choices": [[0, "1"]]}, "finding.choices[0][1]: expected an integer, found '1'"),
        ({"choices": 7}, "finding.choices: expected an array, found 7"),
        ({"observation": []}, "finding.observation: expected an object, found []"),
        ({"explanation": {}}, "finding.explanation: expected the fields operations"),
        ({"explanation": 1}, "finding.explanation: expected an object, found 1"),
    ],
)
def test_a_damaged_finding_is_refused(crash: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlainError) as caught:
        Finding.from_json({**crash.finding.to_json(), **change})
    assert str(caught.value).startswith(message)


def test_the_id_of_a_finding_depends_on_each_part() -> None:
    parts = ["xfs", "UML 6.1.176", "creat a\n", "cache", "P1", "a is missing"]
    ids = {finding_id(parts)}
    for i in range(len(parts)):
        ids.add(finding_id(part + "x" if i == j else part for j, part in enumerate(parts)))
    ids.add(finding_id(["xfs" + "UML 6.1.176", "", *parts[2:]]))
    assert len(ids) == 8
    assert all(check_finding_id(id) for id in ids)


def test_the_id_of_a_finding_takes_any_text() -> None:
    assert check_finding_id(finding_id(("xfs", "creat \ud800", "\x00")))


@pytest.mark.parametrize(
    "text", ["", "f-", "f-0123456", "f-012345678", "F-01234567", "f-0123456g", "f-0123456789abcdef\n"]
)
def test_what_is_no_id_of_a_finding_is_refused(text: str) -> None:
    with pytest.raises(IdError, match="expected a finding's id"):
        check_finding_id(text)


def test_the_id_of_a_recording() -> None:
    assert recording_id("0123456789ABCDEF00") == "r-0123456789abcdef"
    with pytest.raises(IdError, match="found 'r-xyz'"):
        recording_id("xyz")


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ((), "r-0123456789abcdef/3/-"),
        (((0, 0), (4, 0)), "r-0123456789abcdef/3/-"),
        (((0, 1), (4, 2)), "r-0123456789abcdef/3/0.1,4.2"),
        (((4, 2), (3, 0), (0, 1)), "r-0123456789abcdef/3/0.1,4.2"),
    ],
)
def test_state_ids(choices: tuple[tuple[int, int], ...], text: str) -> None:
    assert state_id(RECORDING, 3, choices) == text
    assert parse_state_id(text) == (RECORDING, 3, tuple(sorted(choice for choice in choices if choice[1])))


@given(st.integers(0, 2**32 - 1), st.dictionaries(st.integers(0, 10**6), st.integers(0, 4096)))
def test_every_state_id_is_read_back(interval: int, versions: dict[int, int]) -> None:
    expected = tuple(sorted((component, version) for component, version in versions.items() if version))
    assert parse_state_id(state_id(RECORDING, interval, tuple(versions.items()))) == (RECORDING, interval, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a crash state's id like r-0123456789abcdef/3/0.1,4.2, found ''"),
        ("r-0123456789abcdef/3", "expected a crash state's id"),
        ("r-0123456789abcdef/03/-", "expected a crash state's id"),
        ("r-0123456789abcdef/-1/-", "expected a crash state's id"),
        ("r-0123456789abcdef/3/", "expected a crash state's id"),
        ("r-0123456789abcdef/3/-\n", "expected a crash state's id"),
        ("../../etc/passwd/3/-", "expected a crash state's id"),
        ("r-0123456789abcdef/3/0.0", "a version of at least 1, found '0.0' in 'r-0123456789abcdef/3/0.0'"),
        ("r-0123456789abcdef/3/1", "a version of at least 1, found '1' in"),
        ("r-0123456789abcdef/3/0.1,", "a version of at least 1, found '' in"),
        ("r-0123456789abcdef/3/4.2,0.1", "components must be named once and in order, found '4.2,0.1'"),
        ("r-0123456789abcdef/3/4.2,4.1", "components must be named once and in order"),
        ("r-0123456789abcdef/4294967296/-", "expected numbers up to 4294967295, found '4294967296'"),
        ("r-0123456789abcdef/3/0." + "9" * 5000, "expected numbers up to 4294967295, found '9999"),
    ],
)
def test_what_is_no_state_id_is_refused(text: str, message: str) -> None:
    with pytest.raises(IdError) as caught:
        parse_state_id(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300
