"""SARIF, by the schema of the standard."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft4Validator

from postcrash.reports.sarif import gate_sarif
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]


def log(run: GateRun) -> dict[str, Any]:
    (only,) = json.loads(gate_sarif(run))["runs"]
    return dict(only)


@pytest.mark.parametrize("which", ["mixed", "hostile", "green"])
def test_the_log_follows_the_standard(which: str, sarif_schema: dict[str, Any], request: pytest.FixtureRequest) -> None:
    text = json.loads(gate_sarif(request.getfixturevalue(which)))
    Draft4Validator(sarif_schema, format_checker=Draft4Validator.FORMAT_CHECKER).validate(text)
    assert text["$schema"] == sarif_schema["id"]


def test_the_schema_would_notice(mixed: GateRun, sarif_schema: dict[str, Any]) -> None:
    text = json.loads(gate_sarif(mixed))
    text["runs"][0]["results"][0]["level"] = "fatal"
    assert not Draft4Validator(sarif_schema).is_valid(text)


def test_levels_states_and_suppressions(mixed: GateRun) -> None:
    results = log(mixed)["results"]
    assert [(each["ruleId"], each["level"], each["baselineState"]) for each in results] == [
        ("P5", "error", "new"),
        ("P5", "error", "new"),
        ("undecided", "warning", "new"),
        ("P1", "note", "unchanged"),
        ("undecided", "note", "unchanged"),
        ("fixed", "note", "absent"),
    ]
    assert [each.get("suppressions") for each in results][2:4] == [
        None,
        [{"kind": "external", "status": "accepted", "justification": "see bug 7"}],
    ]
    assert "rename B A" in results[0]["message"]["text"]


def test_each_rule_is_there_once(mixed: GateRun) -> None:
    rules = log(mixed)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["P1", "P5", "fixed", "undecided"]
    assert rules[1]["shortDescription"]["text"] == "safe rename"


def test_a_fingerprint_is_the_same_on_the_next_kernel_and_another_elsewhere(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure
) -> None:
    def fingerprint(cause: str = f"c-{'0' * 16}", **changes: str) -> str:
        part = make_part(verdict="violated", failures=(make_failure(cause),), **changes)
        (result,) = log(make_run(part))["results"]
        assert result["partialFingerprints"]["cause"] == cause
        return str(result["partialFingerprints"]["primaryLocationLineHash"])

    assert fingerprint() == fingerprint(kernel="UML 7.2.0")
    others = [{"target": "xfs"}, {"name": "other"}, {"model": "torn"}, {"cause": f"c-{'1' * 16}"}]
    assert len({fingerprint(), *(fingerprint(**other) for other in others)}) == 5


@pytest.mark.parametrize(
    ("gate", "file", "uri"),
    [
        ("postcrash.toml", "", "postcrash.toml"),
        ("ci/postcrash.toml", "", "ci/postcrash.toml"),
        ("ci/postcrash.toml", "../corpus/a.ops", "corpus/a.ops"),
        ("postcrash.toml", "corpus/a b#c%.ops", "corpus/a%20b%23c%25.ops"),
        ("postcrash.toml", "ä:b.ops", "%C3%A4%3Ab.ops"),
        ("/tmp/postcrash.toml", "a.ops", "file:///tmp/a.ops"),
    ],
)
def test_the_place_is_the_workloads_file_or_the_gates(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure, gate: str, file: str, uri: str
) -> None:
    run = make_run(make_part(verdict="violated", failures=(make_failure(file=file),)), file=gate)
    (location,) = log(run)["results"][0]["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}
    assert location["logicalLocations"] == [
        {"name": "hunt-small", "fullyQualifiedName": "hunt-small/ext4-current/UML 6.1.176/cache"}
    ]


def test_a_fixed_line_is_placed_in_the_baseline(make_run: MakeRun) -> None:
    fixed = (FixedLine(line=7, cause="c-1", why="mended"),)
    (result,) = log(make_run(file="ci/postcrash.toml", fixed=fixed))["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "ci/known.toml"}, "region": {"startLine": 7}}
