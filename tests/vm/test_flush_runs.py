"""Flushes that are left out in a guest: none is made, the program notices nothing, and a check that looks sees it."""

import json
from pathlib import Path

import pytest

from postcrash._core import Recording
from postcrash.model import ExitCode

from .audits import Audit, told
from .command import postcrash

ALL_KINDS = """
import ctypes, mmap, os, threading
file = os.open('f', os.O_CREAT | os.O_RDWR, 0o644)
os.write(file, b'x' * 5000)
memory = mmap.mmap(file, 5000)
libc = ctypes.CDLL(None)
thread = threading.Thread(target=lambda: os.fdatasync(file))
os.fsync(file)
thread.start()
thread.join()
memory.flush()
assert libc.syncfs(file) == 0
os.sync()
print(1, flush=True)
"""
ACKNOWLEDGED_IS_THERE = "grep -q 1 $POSTCRASH_ACKNOWLEDGED || exit 0; [ $(wc -c <f) = 5000 ]"
REPLACE = """
import os
file = os.open('new', os.O_CREAT | os.O_WRONLY, 0o644)
os.write(file, b'new')
os.fsync(file)
os.fdatasync(file)
os.rename('new', 'f')
"""
OLD_OR_NEW = '[ "$(cat f)" = old ] || [ "$(cat f)" = new ]'


def program(folder: Path, text: str) -> str:
    (folder / "program.py").write_text(text)
    return f"/usr/bin/python3 -S {folder}/program.py"


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [("1,2,3,4", "holds"), ("2,3,4,5", "holds"), ("1,2,3,4,5", "violated")],
)
def test_each_kind_of_flush_can_be_left_out(audit: Audit, tmp_path: Path, numbers: str, verdict: str) -> None:
    """One that is made is enough: so each of the others had its turn, and without all there is nothing."""
    run = program(tmp_path, ALL_KINDS)
    found = told(audit, "--run", run, "--check", ACKNOWLEDGED_IS_THERE, "--without-flush", numbers)
    assert found["verdict"] == verdict


def test_what_is_left_out_is_noted_and_succeeds(audit: Audit, tmp_path: Path) -> None:
    run = program(tmp_path, ALL_KINDS)
    told(audit, "--run", run, "--check", "true", "--without-flush", "1,2,3,4,5", "--one-disk")
    notes = [note for path in tmp_path.glob("**/*.pcr") for note in Recording(path).calls()]
    assert notes
    begun = [str(note[4]) for note in notes if note[1] == "call-begins" and str(note[4]).endswith(", left out")]
    assert [text.partition("(")[0] for text in begun] == ["fsync", "fdatasync", "msync", "syncfs", "sync"]


def test_a_flush_that_is_never_made_is_an_error(audit: Audit, tmp_path: Path) -> None:
    run = program(tmp_path, REPLACE)
    ended = audit("--run", run, "--check", "true", "--target", "ext4-current", "--without-flush", "2,7")
    assert ended.returncode == ExitCode.USAGE
    assert "it makes 2 flushes, so that flush 7 cannot be left out" in ended.stderr


def test_a_supervisor_answers_flushes_itself(audit: Audit, tmp_path: Path) -> None:
    run = program(tmp_path, REPLACE)
    ended = audit("--run", run, "--check", "true", "--target", "xsyncfs", "--without-flush", "1")
    assert ended.returncode == ExitCode.USAGE
    assert "a supervisor answers flushes itself" in ended.stderr


def test_advice_on_a_target_rests_on_runs_there(tmp_path: Path) -> None:
    """Two flushes in a row stand for each other: each can go, both cannot. The model says so, and so do the runs."""
    ended = postcrash(
        tmp_path,
        *("--store", "s", "needs", "--run", program(tmp_path, REPLACE), "--set-up", "printf old >f; sync"),
        *("--check", OLD_OR_NEW, "--advise", "--target", "ext4-current", "--json", "advice.json", "--sarif", "a.sarif"),
    )
    assert ended.returncode == ExitCode.HOLDS, ended.stderr
    (answer,) = json.loads((tmp_path / "advice.json").read_text())["needs"]
    advice = answer["advice_on"]["ext4-current"]
    assert [(each["name"], each["needed"]) for each in advice["flushes"]] == [("fsync", False), ("fdatasync", True)]
    runs = advice["runs"]
    assert [(each["left_out"], each["verdict"]) for each in runs["alone"]] == [
        (['fsync("new")'], "holds"),
        (['fdatasync("new")'], "holds"),
    ]
    assert runs["together"] is None
    assert "no two of them can go together" in ended.stdout
    rules = [each["ruleId"] for each in json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]]
    assert rules == ["needless-flush", "needless-flush-on-target", "needless-flush-on-target"]
