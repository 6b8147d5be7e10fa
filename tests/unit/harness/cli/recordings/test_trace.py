"""`postcrash trace` and `postcrash import-strace`: what they write, print and refuse; docs/strace.md."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from postcrash.model import load_workload, parse_workload, simulate

from .....vm.command import COMMAND
from ..conftest import postcrash

pytestmark = pytest.mark.slow

DOCUMENT = (Path(__file__).resolve().parents[5] / "docs/strace.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_document_s_example_is_what_comes_out(tmp_path: Path) -> None:
    (tmp_path / "postcrash").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{COMMAND[2]}" "$@"\n')
    (tmp_path / "postcrash").chmod(0o755)
    script = "".join(line for line in block("sh").splitlines(keepends=True) if "check" not in line)
    script = script.replace("-o save.ops", "-o save.ops --keep strace.out")
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, env=path, check=True, capture_output=True, timeout=60)
    assert load_workload(tmp_path / "save.ops") == parse_workload(block("ops"), "save")
    assert (tmp_path / "data/config").read_text() == "new\n"
    code = subprocess.run([sys.executable, "-c", block("python")], cwd=tmp_path, check=True, capture_output=True)
    assert b"write tmp 0 4" in code.stdout and b"b'new\\n'" in code.stdout


def test_trace_says_what_it_left_out_and_passes_the_exit_code_on(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    program = "touch data/a; chmod 600 data/a; echo hello; exit 7"
    result = postcrash(tmp_path, "trace", "--root", "data", "-o", "x.ops", "--", "sh", "-c", program)
    assert result.returncode == 0
    assert result.stderr == "postcrash: sh ended with exit code 7\n"
    said, first, *others = result.stdout.splitlines()
    assert (said, first) == ("hello", "x.ops: 0 operations of set-up, 1 recorded")
    assert [line for line in others if not line.startswith("differs: ")] == [
        line
        for line in others
        if re.fullmatch(r"not mapped: line \d+: (utimensat|fchmodat): workloads have nothing like it", line)
    ]
    assert len([line for line in others if "fchmodat" in line]) == 1
    assert all(f"# {line}" in (tmp_path / "x.ops").read_text().splitlines() for line in others)
    simulate(load_workload(tmp_path / "x.ops"))


def test_json_has_every_operation_with_its_call(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/old").write_text("12345")
    (tmp_path / "data/link").symlink_to("old")
    os.link(tmp_path / "data/old", tmp_path / "data/other")
    os.mkfifo(tmp_path / "data/pipe")
    program = ["sh", "-c", "echo new >> data/link; echo out"]
    result = postcrash(tmp_path, "trace", "--root", "data", "-o", "x.ops", "--json", "-", "--", *program)
    report = json.loads(result.stdout)
    assert result.stderr == "out\n"
    assert report["setup"] == ["symlink old link", "creat old", "append old 5", "link old other"]
    (written,) = report["ops"]
    assert (written["operation"], written["call"], written["written"]) == ("append old 4", "write", 4)
    (pipe,) = report["not_mapped"]
    assert pipe["line"] == 0 and "'pipe'" in pipe["reason"]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("trace", "--root", "absent", "-o", "x.ops", "true"), 4, "absent: No such file or directory"),
        (("trace", "--root", ".", "-o", "x.ops", "true"), 4, "no call in the folder"),
        (("import-strace", "absent", "--root", ".", "-o", "x.ops"), 4, "absent: it is no file"),
        (("import-strace", "wrong", "--root", ".", "-o", "x.ops"), 4, "wrong:1: expected a system call, found 'hello'"),
        (("import-strace", "good", "--root", "/r", "-o", "no/x.ops"), 3, "cannot write no/x.ops: No such file"),
    ],
)
def test_refusals_are_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, expected: str) -> None:
    (tmp_path / "wrong").write_text("hello\n")
    (tmp_path / "good").write_text('1 mkdir("/r/a", 0777) = 0\n')
    result = postcrash(tmp_path, *arguments)
    assert result.returncode == code, result.stderr
    (line,) = result.stderr.splitlines()
    assert expected in line
    assert not (tmp_path / "x.ops").exists()


def test_import_takes_what_stood_there_before_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "before/a").touch()
    (tmp_path / "trace").write_text('rename("/r/a", "/r/b") = 0\n')
    result = postcrash(tmp_path, "import-strace", "trace", "--root", "/r", "--before", "before", "-o", "x.ops")
    assert result.returncode == 0, result.stderr
    assert load_workload(tmp_path / "x.ops") == parse_workload("creat a\n---\nrename a b\n", "x")
