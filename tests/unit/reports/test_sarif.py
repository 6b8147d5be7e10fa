"""What all SARIF logs have in common: rules, places and fingerprints, whatever the texts hold."""

import json
from typing import Any

import pytest
from jsonschema import Draft4Validator

from postcrash.reports.sarif import SarifResult, SourceLine, sarif_log

ODD = 'a\n\x1b[31m"\u202e<b>'


def result(rule: str, text: str = "it broke", *, fingerprint: tuple[str, ...] = ("a",), **more: Any) -> SarifResult:
    return SarifResult(rule, "error", text, fingerprint, **more)


def log(*results: SarifResult, **more: Any) -> dict[str, Any]:
    given = {"id": "gate", "version": "0.1.0", "descriptions": {"P1": "in order"}, "help_text": "Look.", **more}
    found: dict[str, Any] = json.loads(sarif_log(results=results, **given))
    return found


def test_a_log_follows_the_standard(sarif_schema: dict[str, Any]) -> None:
    source = SourceLine("a b.c", 3, ODD)
    whole = result(ODD, ODD, source=source, place=(ODD, ODD), stack=(source,), fingerprint=(ODD, ODD))
    for told in (log(whole, id=ODD, version=ODD, help_text=ODD, properties={"a": [1]}), log()):
        Draft4Validator(sarif_schema, format_checker=Draft4Validator.FORMAT_CHECKER).validate(told)
        assert told["$schema"] == sarif_schema["id"]


def test_each_rule_stands_there_once_and_a_judge_without_words_has_some() -> None:
    (run,) = log(result("mounts"), result("P1"), result("mounts"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [(each["id"], each["shortDescription"]["text"], each["help"]["text"]) for each in rules] == [
        ("P1", "in order", "Look."),
        ("mounts", "The judge mounts of postcrash", "Look."),
    ]
    assert [each["ruleId"] for each in run["results"]] == ["mounts", "P1", "mounts"]
    assert "properties" not in run


def test_runs_of_one_thing_follow_each_other() -> None:
    """The id ends with a slash, or a part of it would be taken for the number of a run."""
    (run,) = log(id="gate/small\n")["runs"]
    assert run["automationDetails"]["id"] == "gate/small/"


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("src/a.c", "src/a.c"),
        ("/src/a.c", "file:///src/a.c"),
        ("a b#?%.c", "a%20b%23%3F%25.c"),
        ("ä.c", "%C3%A4.c"),
    ],
)
def test_a_path_is_an_address(file: str, uri: str) -> None:
    assert SourceLine(file, 7).to_sarif() == {"artifactLocation": {"uri": uri}, "region": {"startLine": 7}}


def test_a_fingerprint_is_of_all_words_and_tells_them_apart() -> None:
    asked = [("a", "b"), ("ab",), ("a", "", "b"), ("b", "a"), ("", "ab")]
    results = log(*(result("P1", fingerprint=words) for words in (*asked, asked[0])))["runs"][0]["results"]
    fingerprints = [each["partialFingerprints"] for each in results]
    made = [each["primaryLocationLineHash"] for each in fingerprints]
    assert len(set(made)) == len(asked)
    assert fingerprints[0] == fingerprints[-1] == {"cause": "b", "primaryLocationLineHash": made[0]}
    assert made[0].endswith(":1") and len(made[0]) == 18
