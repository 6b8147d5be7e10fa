"""`merge` and `diff`: what they write, and what they say of files that they cannot use."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from postcrash.harness.cli.main import cli
from postcrash.harness.errors import UsageError
from postcrash.harness.gate.merging import load_result
from postcrash.model import ExitCode
from postcrash.store.gate_run import Failure, GateRun, Part
from postcrash.store.records import Finding
from postcrash.store.store import Store

FAILURE = Failure(cause="c-0123456789abcdef", verdict="violated", judge="P5", message="it broke")


def written(folder: Path, name: str, shard: str, *failures: Failure, **about: Any) -> str:
    part = Part(
        name="small",
        kind="hunt",
        target="xfs",
        kernel="UML 6.1",
        model="cache",
        expect="practice",
        verdict="violated" if failures else "holds",
        workloads=3,
        states="10",
        failures=failures,
    )
    told = {"version": "1", "started": "2026-01-31T12:00:00Z", "seconds": 1, "file": "f", **about}
    run = GateRun(**told, shards=(shard,), parts=(part,))
    (folder / name).write_text(run.model_dump_json())
    return str(folder / name)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def test_shards_are_put_together(tmp_path: Path) -> None:
    files = [written(tmp_path, "1", "1/2"), written(tmp_path, "2", "2/2", FAILURE)]
    forms = {
        form: str(tmp_path / form) for form in ("json", "json-lines", "junit", "ktap", "sarif", "markdown", "html")
    }
    options = [word for form, place in forms.items() for word in (f"--{form}", place)]
    done = invoke("--store", str(tmp_path / "store"), "merge", *files, *options, "--github")
    assert done.return_value == ExitCode.VIOLATED
    assert "it broke" in done.output
    assert "::error" in done.output
    whole = load_result(forms["json"])
    assert (whole.shards, whole.parts[0].workloads, whole.parts[0].states) == (("1/2", "2/2"), 6, "20")
    assert all("it broke" in Path(place).read_text() for place in forms.values())


def test_the_page_has_the_stories_of_findings_in_the_store(tmp_path: Path) -> None:
    told: dict[str, Any] = {
        **{"checker": "P5", "message": "a is short", "target": "xfs", "kernel": "UML 6.1", "model": "cache"},
        **dict.fromkeys(("workload_name", "workload_text", "recording", "base", "state"), "r-0123456789abcdef"),
        **dict.fromkeys(("interval", "torn", "started", "returned"), 0),
        **{"choices": (), "lost": (), "observation": None, "casualty": None, "recover": {}},
    }
    finding = Finding(id="f-0123456789abcdef", **told)
    Store(tmp_path / "store").put_finding(finding)
    here = FAILURE.model_copy(update={"finding": finding.id})
    gone = FAILURE.model_copy(update={"cause": "c-0123456789abcde0", "finding": "f-0123456789abcde0"})
    page = tmp_path / "gate.html"
    file = written(tmp_path, "1", "1/1", here, gone)
    invoke("--store", str(tmp_path / "store"), "merge", file, "--html", str(page))
    (block,) = re.findall(r'id="stories">(.*)</script>', page.read_text())
    assert list(json.loads(block)["stories"]) == [finding.id]
    assert f'id="{gone.finding}"' in page.read_text()


def test_what_goes_to_standard_output_stands_there_alone(tmp_path: Path) -> None:
    done = invoke("merge", written(tmp_path, "1", "1/1"), "--json", "-")
    assert json.loads(done.stdout)["shards"] == ["1/1"]
    assert done.return_value == ExitCode.HOLDS


@pytest.mark.parametrize("command", ["merge", "gate"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--json", "-", "--json-lines", "-"], "--json and --json-lines"),
        (["--junit", "-", "--github"], "--junit and --github"),
    ],
)
def test_two_forms_on_standard_output_are_refused_before_anything_is_done(
    command: str, options: list[str], said: str
) -> None:
    done = invoke(command, "absent", *options)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == f"{said}: only one of them can go to standard output"
    assert done.output == ""


@pytest.mark.parametrize("shards", [("1/2",), ("1/2", "1/2"), ("1/2", "2/3")])
def test_shards_that_are_not_all_of_a_gate(tmp_path: Path, shards: tuple[str, ...]) -> None:
    files = [written(tmp_path, str(number), shard) for number, shard in enumerate(shards)]
    assert isinstance(invoke("merge", *files).exception, UsageError)


def test_a_shard_that_was_interrupted_is_no_pass(tmp_path: Path) -> None:
    files = [written(tmp_path, "1", "1/2", interrupted=True), written(tmp_path, "2", "2/2")]
    assert invoke("merge", *files).return_value == ExitCode.UNDECIDED


def test_shards_on_another_build_of_the_kernel_are_not_merged(tmp_path: Path) -> None:
    kernel = "kernel ./linux (UML 6.1.0) for xfs"
    files = [written(tmp_path, f"{n}", f"{n}/2", digests={kernel: digit * 64}) for n, digit in ((1, "a"), (2, "b"))]
    error = invoke("merge", *files).exception
    assert isinstance(error, UsageError)
    assert f"'{kernel}' is {'a' * 64} in shard 1/2 and {'b' * 64} in shard 2/2" in str(error)


def test_a_result_of_an_older_postcrash_is_refused(tmp_path: Path) -> None:
    """It does not say what must hold, whether it was interrupted, and what it rests on."""
    old = Path(written(tmp_path, "1", "1/1"))
    old.write_text(old.read_text().replace("postcrash gate 4", "postcrash gate 1"))
    error = invoke("merge", str(old)).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"{old}: format: ")


def test_what_changed(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old", "1/1"), written(tmp_path, "new", "1/1", FAILURE)
    assert (invoke("diff", old, old).output, invoke("diff", old, old).return_value) == ("", ExitCode.HOLDS)
    done = invoke("diff", old, new)
    assert done.return_value == ExitCode.VIOLATED
    assert [line[0] for line in done.output.splitlines()] == ["~", "+"]
    assert done.stderr == ""
    assert [line[0] for line in invoke("diff", new, old).output.splitlines()] == ["~", "-"]


def test_a_difference_in_what_was_asked_is_a_note_and_no_change(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old", "1/1"), written(tmp_path, "new", "1/1", version="2")
    done = invoke("diff", old, new)
    assert (done.return_value, done.stdout) == (ExitCode.HOLDS, "")
    assert done.stderr == "postcrash: the runs are not alike: version: '1' in OLD, and '2' in NEW\n"


@pytest.mark.parametrize("content", [None, "", "{}", "[1]"])
def test_a_file_that_is_no_result(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    for command in (("merge", str(file)), ("diff", str(file), str(file))):
        error = invoke(*command).exception
        assert isinstance(error, UsageError)
        assert str(file) in str(error)
