"""JSON lines: each has all that is in the result, and follows the schema."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from postcrash.reports.gate.json_lines import json_lines, line_schema
from postcrash.store.gate_run import GateRun

PUBLISHED = Path(__file__).parents[4] / "docs" / "result-line.schema.json"


def read(run: GateRun) -> list[dict[str, Any]]:
    return [json.loads(line) for line in json_lines(run)]


@pytest.mark.parametrize("which", ["mixed", "hostile", "green"])
def test_lines_follow_the_schema(which: str, request: pytest.FixtureRequest) -> None:
    Draft202012Validator.check_schema(line_schema())
    validator = Draft202012Validator(line_schema())
    run: GateRun = request.getfixturevalue(which)
    assert all("\n" not in line for line in json_lines(run))
    for line in read(run):
        validator.validate(line)


@pytest.mark.parametrize("change", [{"type": "other"}, {"seconds": "1"}, {"more": 1}, {"verdict": "fine"}])
def test_the_schema_refuses_what_no_line_has(green: GateRun, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(line_schema()).validate({**read(green)[0], **change})


def test_the_first_line_has_the_verdict_and_the_counts(mixed: GateRun) -> None:
    head = read(mixed)[0]
    assert (head["type"], head["verdict"], head["format"]) == ("run", "violated", "postcrash gate 4")
    assert head["counts"] == {
        "new": 2,
        "upstream": 0,
        "known": 2,
        "fixed": 1,
        "undecided": 1,
        "workloads": 160,
        "states": str(4 * 2**70),
        "recoveries": 480,
    }


def test_the_lines_hold_the_whole_result(mixed: GateRun) -> None:
    """The result can be put together from them again."""
    head, *rest = read(mixed)
    parts: list[dict[str, Any]] = []
    fixed = []
    for line in rest:
        kind = line.pop("type")
        if kind == "part":
            line.pop("gated")
            parts.append({**line, "failures": []})
        elif kind == "failure":
            place = (line.pop("part"), line.pop("target"), line.pop("kernel"), line.pop("model"))
            last = parts[-1]
            assert place == (last["name"], last["target"], last["kernel"], last["model"])
            last["failures"].append(line)
        else:
            assert kind == "fixed"
            fixed.append(line)
    for name in ("type", "verdict", "counts"):
        head.pop(name)
    assert GateRun.model_validate({**head, "parts": parts, "fixed": fixed}) == mixed


def test_a_part_has_both_verdicts(mixed: GateRun) -> None:
    parts = [line for line in read(mixed) if line["type"] == "part"]
    assert [(part["verdict"], part["gated"]) for part in parts][2] == ("undecided", "holds")


def test_the_published_schema_is_that_of_the_lines() -> None:
    assert PUBLISHED.read_text() == json.dumps(line_schema(), indent=2) + "\n"
