"""A file of a result: what was written is read, and anything else is one line that says where it is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.gate import merging
from postcrash.harness.gate.merging import load_result
from postcrash.store.gate_run import GateRun


def told(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_result(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and text.isprintable()
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize("which", ["mixed", "hostile", "green"])
def test_what_was_written_is_read(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run: GateRun = request.getfixturevalue(which)
    path = tmp_path / "gate.json"
    path.write_text(run.model_dump_json(indent=2))
    assert load_result(path) == run
    assert load_result(str(path)) == run


def _set(*place: str | int, value: Any) -> Callable[[Any], None]:
    def change(result: Any) -> None:
        for step in place[:-1]:
            result = result[step]
        result[place[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            _set("format", value="postcrash gate 1"),
            "format: Input should be 'postcrash gate 4', found 'postcrash gate 1'",
        ),
        (_set("parts", 0, "recoveries", value=-1), "parts.0.recoveries: .* greater than or equal to 0, found -1"),
        (_set("parts", 0, "states", value="1e9"), "parts.0.states: String should match pattern .*, found '1e9'"),
        (_set("parts", 0, "seconds", value="NaN"), "parts.0.seconds: .* finite number, found 'NaN'"),
        (_set("parts", 0, "failures", 0, "cause", value="c-1"), r"parts.0.failures.0.cause: .*, found 'c-1'"),
        (
            _set("parts", 0, "failures", 0, "finding", value="f-1; rm x"),
            r"parts.0.failures.0.finding: .*, found 'f-1; rm x'",
        ),
        (
            _set("parts", 0, "failures", 0, "message", value="x" * 100_001),
            "parts.0.failures.0.message: .*, found 'x{79}…",
        ),
        (_set("parts", 0, "oh\n\x1bno", value=1), r"'parts.0.oh\\n\\x1bno': Extra inputs are not permitted, found 1"),
        (_set("parts", 0, "y" * 10_000, value=1), "parts.0.y{72}…: Extra inputs are not permitted, found 1"),
        (_set("shards", value=[]), r"shards: .* at least 1 item .*, found \[\]"),
        (_set("shards", value=["0/1"]), "shards.0: String should match pattern .*, found '0/1'"),
        (_set("fixed", 0, "line", value=0), "fixed.0.line: .*, found 0"),
    ],
)
def test_the_place_and_what_was_found_are_told(
    mixed: GateRun, tmp_path: Path, change: Callable[[Any], None], words: str
) -> None:
    result = json.loads(mixed.model_dump_json())
    change(result)
    path = tmp_path / "gate.json"
    path.write_text(json.dumps(result))
    with pytest.raises(UsageError, match=f"^{path}: {words}$"):
        load_result(path)
    assert told(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "its text: Invalid JSON: EOF"),
        (b"{}", "version, started, seconds, file, parts: Field required"),
        (b"[]", "its text: Input should be an object"),
        (b"\xff\xfe", "its text: Invalid JSON"),
        (b"[" * 100_000, "its text: Invalid JSON: recursion limit exceeded"),
        (b'{"version": "\\ud800"}', "its text: Invalid JSON"),
    ],
)
def test_what_is_no_result(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "gate.json"
    path.write_bytes(content)
    assert told(path).startswith(words)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, green: GateRun) -> None:
    path = tmp_path / "gate.json"
    text = green.model_dump_json()
    path.write_text(text)
    monkeypatch.setattr(merging, "RESULT_BYTES_MAX", len(text) - 1)
    assert told(path) == f"more than {len(text) - 1} bytes"
    monkeypatch.setattr(merging, "RESULT_BYTES_MAX", len(text))
    assert load_result(path) == green


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    assert told(tmp_path / "none.json") == "No such file or directory"
    assert told(tmp_path) == "Is a directory"


def test_the_name_of_the_file_is_shown_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_result(tmp_path / "a\n\x1b[2J.json")
    assert str(caught.value).isprintable()
