"""The advice on flushes as SARIF: by the schema of the standard, and at lines of the source."""

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft4Validator

from postcrash.apps.needs import Advice, BadFolder, EnoughSet
from postcrash.apps.needs.advice import FlushAdvice, MissingFlush
from postcrash.apps.needs.space import Moment
from postcrash.apps.protocol import Protocol, Step
from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import Change, FlushedRange, Frame, SizeSlot
from postcrash.harness.auditing.flush_runs import FlushRun, RunsWithout
from postcrash.harness.cli.main import cli
from postcrash.harness.cli.programs.needs_sarif import ApplicationAdvice, advice_sarif
from postcrash.harness.errors import UsageError
from postcrash.model import ExitCode, Verdict

from ...cells import audit_cell

HOSTILE = "a\x1b[2J\n] <script>"
STACK = (
    Frame("write", "/lib/x86_64-linux-gnu/libc.so.6", 0),
    Frame("save", "/elsewhere/a file.c", 7),
    Frame("main", "/elsewhere/main.c", 14),
)
WRITE = Step(0, "write", "a", 0, 1, (), everything=False, outputs=(), known=0, stack=STACK)
FSYNC = Step(
    1,
    "fsync",
    "a",
    1,
    1,
    (FlushedRange(2, 0, None, own=False),),
    everything=False,
    outputs=(),
    known=1,
    stack=STACK[:1],
)
PROTOCOL = Protocol(1, {}, {}, (WRITE, FSYNC), (Change(0, 0, SizeSlot(2), 5),))
LOST = State(Slots(PROTOCOL), 1, frozenset())
BAD = BadFolder(Moment(2, 1, ("said",)), LOST, HOSTILE, frozenset({"P5"}))
ENOUGH = EnoughSet(frozenset(), 12, is_complete=True)


def results(advice: Advice, schema: dict[str, Any], runs: RunsWithout | None = None) -> list[dict[str, Any]]:
    log = json.loads(advice_sarif([ApplicationAdvice("app", PROTOCOL, advice, runs)]))
    Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER).validate(log)
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == sorted(
        {each["ruleId"] for each in run["results"]}
    )
    return list(run["results"])


@pytest.mark.parametrize(
    ("verdict", "doubt", "noted"),
    [
        (Verdict.HOLDS, "", ["needless-flush-on-target"]),
        (Verdict.HOLDS, "another flush was left out", []),
        (Verdict.VIOLATED, "", []),
        (Verdict.UNDECIDED, "", []),
    ],
)
def test_a_flush_without_which_a_run_held_is_noted(
    verdict: Verdict, doubt: str, noted: list[str], sarif_schema: dict[str, Any]
) -> None:
    cell = audit_cell(verdict)
    run = FlushRun({1: FSYNC}, ('fsync("a")',), cell, doubt)
    advice = Advice(frozenset(), (FlushAdvice(FSYNC, BAD),), (), ENOUGH)
    found = results(advice, sarif_schema, RunsWithout("ext4", (run,)))
    assert [each["ruleId"] for each in found] == noted
    assert all("all 1,200 crash states are fine" in each["message"]["text"] for each in found)


def test_what_a_run_contradicts_is_not_noted(sarif_schema: dict[str, Any]) -> None:
    advice = Advice(frozenset(), (FlushAdvice(FSYNC, ENOUGH),), (), ENOUGH)
    assert [each["ruleId"] for each in results(advice, sarif_schema)] == ["needless-flush"]
    run = FlushRun({1: FSYNC}, ('fsync("a")',), audit_cell(Verdict.VIOLATED))
    assert results(advice, sarif_schema, RunsWithout("ext4", (run,))) == []


def test_a_missing_flush_is_at_the_line_after_which_it_is_missing(sarif_schema: dict[str, Any]) -> None:
    advice = Advice(frozenset(), (), (MissingFlush(2, False, WRITE, BAD),), ENOUGH)
    (result,) = results(advice, sarif_schema)
    assert (result["ruleId"], result["level"]) == ("missing-flush", "error")
    (place,) = result["locations"]
    expected = {"artifactLocation": {"uri": "file:///elsewhere/a%20file.c"}, "region": {"startLine": 7}}
    assert place["physicalLocation"] == expected
    frames = [each["location"] for each in result["stacks"][0]["frames"]]
    assert [(each["message"]["text"], each["physicalLocation"]["region"]["startLine"]) for each in frames] == [
        ("save", 7),
        ("main", 14),
    ]
    assert result["message"]["text"].startswith(
        "missing: fsync of the file, after write of a, call 0, elsewhere/a file"
    )
    assert "\x1b" not in result["message"]["text"] and "\n" not in result["message"]["text"]


def test_a_flush_that_can_go_is_a_note_and_a_needed_one_is_none(sarif_schema: dict[str, Any]) -> None:
    """Without debug information only the call is known."""
    open_question = FlushAdvice(FSYNC, replace(ENOUGH, is_complete=False))
    flushes = (FlushAdvice(FSYNC, ENOUGH), FlushAdvice(FSYNC, BAD), open_question)
    (result,) = results(Advice(frozenset(), flushes, (), ENOUGH), sarif_schema)
    assert (result["ruleId"], result["level"], "stacks" in result) == ("needless-flush", "note", False)
    (place,) = result["locations"]
    assert place == {"logicalLocations": [{"name": "fsync", "fullyQualifiedName": "app/call 1: fsync of a"}]}


def test_what_no_flush_mends_is_at_what_was_lost(sarif_schema: dict[str, Any]) -> None:
    (result,) = results(Advice(frozenset(), (), (), BAD), sarif_schema)
    assert (result["ruleId"], result["level"]) == ("no-flush-mends", "error")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert "lost: the size 5 (write of a" in result["message"]["text"]
    assert results(Advice(frozenset(), (), (), BAD, is_cut=True), sarif_schema) == []
    nothing = replace(BAD, state=State(Slots(PROTOCOL), 1, frozenset({0})))
    (result,) = results(Advice(frozenset(), (), (), nothing), sarif_schema)
    assert result["locations"][0]["logicalLocations"][0]["name"] == "fsync"


def test_files_of_the_current_folder_are_seen_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sarif_schema: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    here = replace(WRITE, stack=(Frame("save", str(tmp_path / "src/save.c"), 3),))
    (result,) = results(Advice(frozenset(), (), (MissingFlush(2, False, here, BAD),), ENOUGH), sarif_schema)
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/save.c"


def test_without_advice_there_is_nothing_to_write(tmp_path: Path) -> None:
    arguments = ["--store", str(tmp_path), "needs", "--run", "true", "--check", "true", "--sarif", "-"]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "--advise" in str(done.exception)


@pytest.mark.slow
def test_the_example_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sarif_schema: dict[str, Any]
) -> None:
    page = (Path(__file__).parents[5] / "docs/audit.md").read_text()
    monkeypatch.chdir(tmp_path)
    for language, name in (("c", "save.c"), ("sh", "check.sh")):
        (text,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        Path(name).write_text(text)
    (build, line) = re.findall(r"^    (cc .*)\n    postcrash (needs .*)$", page, re.MULTILINE)[0]
    subprocess.run(["sh", "-c", build], check=True)
    arguments = ["--store", "store", *shlex.split(line.replace("$PWD", str(tmp_path)))]
    assert CliRunner().invoke(cli, arguments, standalone_mode=False).return_value == ExitCode.HOLDS
    log = json.loads(Path("advice.sarif").read_text())
    Draft4Validator(sarif_schema).validate(log)
    found = [(each["ruleId"], each["locations"][0]["physicalLocation"]) for each in log["runs"][0]["results"]]
    place = {"artifactLocation": {"uri": "save.c"}}
    assert found == [("missing-flush", {**place, "region": {"startLine": number}}) for number in (7, 9)]
