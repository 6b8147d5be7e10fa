"""Flushes that are left out in a guest: none is made, the program notices nothing, and a check that looks sees it."""

import json
from pathlib import Path
from typing import Any

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
ACKNOWLEDGED = "grep -q 1 $POSTCRASH_ACKNOWLEDGED || exit 0;"
ACKNOWLEDGED_IS_THERE = f"{ACKNOWLEDGED} [ $(wc -c <f) = 5000 ]"
REPLACE = """
import os
file = os.open('new', os.O_CREAT | os.O_WRONLY, 0o644)
os.write(file, b'new')
os.fsync(file)
os.fdatasync(file)
os.rename('new', 'f')
"""
APPEND = """
import os
file = os.open('f', os.O_WRONLY | os.O_APPEND)
os.write(file, b'new')
os.fsync(file)
os.fdatasync(file)
print(1, flush=True)
"""


BOTH_FILES = """
import os, mmap, ctypes
f = os.open('f', os.O_RDWR)
g = os.open('g', os.O_RDWR)
"""
FAILS_FIRST = """
p = os.open('p', os.O_RDWR)
for other in (p, os.open('.', os.O_PATH)):
    try:
        os.fsync(other)
    except OSError:
        pass
os.write(f, b'new')
os.fsync(f)
"""
PRIVATE_FIRST = """
private = mmap.mmap(f, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
shared = mmap.mmap(f, 4096)
private.flush()
shared[0:3] = b'new'
shared.flush()
"""
C_CALLS = """
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mmap.restype = ctypes.c_void_p
libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
"""
BEHIND_MEMORY = f"""{C_CALLS}place = 0x10000000
libc.mmap(place, 4096, 3, 0x32, -1, 0)
libc.mmap(place + 4096, 4096, 3, 0x11, f, 0)
other = mmap.mmap(g, 4096)
assert libc.msync(place, 8192, 1) == 0
ctypes.memmove(place + 4096, b'new', 3)
assert libc.msync(place, 8192, 4) == 0
other.flush()
"""
FAR_AWAY = f"""{C_CALLS}near = libc.mmap(0x10000000, 4096, 3, 1, g, 0)
for number in range(1200):
    libc.mmap(0x20000000 + number * 8192, 4096, 1, 2, g, 0)
far = libc.mmap(None, 4096, 3, 1, f, 0)
ctypes.memmove(far, b'new', 3)
assert libc.msync(far, 4096, 4) == 0
assert libc.msync(near, 4096, 4) == 0
"""
UNDER_A_FILTER = """
import struct
def instruction(*fields):
    return struct.pack('HBBI', *fields)
allow, refuse = (instruction(6, 0, 0, value) for value in (0x7fff0000, 0x00050001))
code = ctypes.create_string_buffer(instruction(0x20, 0, 0, 0) + instruction(0x25, 0, 1, 600) + refuse + allow)
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(code))), 0, 0) == 0
os.write(f, b'new')
os.fsync(f)
"""
ONLY_THERE = """
os.write(f, b'new')
if os.path.exists('lost+found'):
    os.fsync(os.open('.', os.O_RDONLY))
os.fsync(f)
"""
IN_ANOTHER_ORDER = """
os.write(f, b'new')
for file in (g, f) if os.path.exists('lost+found') else (f, g):
    os.fsync(file)
"""
ONE_OF_THREE = """
os.write(f, b'new')
os.write(g, b'new')
os.sync()
os.fsync(f)
os.fsync(g)
"""


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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for all tests of this module, so that what the target gives is measured once."""
    return tmp_path_factory.mktemp("store")


def advised(folder: Path, store: Path, text: str) -> dict[str, Any]:
    """The runs of advice on a program with these lines, whose check wants `f` to be new once it has said so."""
    run = program(folder, f"{BOTH_FILES}{text}print(1, flush=True)\n")
    zeros = "head -c 4093 /dev/zero"
    set_up = f"for file in f g; do {{ printf old; {zeros}; }} >$file; done; mkfifo p; sync"
    check = f"{ACKNOWLEDGED} [ $(head -c 3 f) = new ]"
    ended = postcrash(
        folder,
        *("--store", str(store), "needs", "--run", run, "--set-up", set_up, "--check", check),
        *("--advise", "--target", "ext4-current", "--json", "advice.json"),
    )
    assert ended.returncode == ExitCode.HOLDS, ended.stderr
    (answer,) = json.loads((folder / "advice.json").read_text())["needs"]
    runs: dict[str, Any] = answer["advice_on"]["ext4-current"]["runs"]
    return runs


@pytest.mark.parametrize(
    "text",
    [
        BEHIND_MEMORY,
        *(
            pytest.param(text, marks=pytest.mark.full)
            for text in (FAILS_FIRST, UNDER_A_FILTER, PRIVATE_FIRST, FAR_AWAY)
        ),
    ],
)
def test_the_flush_that_is_meant_is_left_out(tmp_path: Path, store: Path, text: str) -> None:
    """Others that fail, that are about nothing, or that are hard to find do not take its place."""
    first = advised(tmp_path, store, text)["alone"][0]
    assert first["verdict"] == "violated", first


@pytest.mark.parametrize(
    ("text", "told"),
    [(ONLY_THERE, 'flush 1 is fsync("."), and not fsync of f'), (IN_ANOTHER_ORDER, 'flush 1 is fsync("g"), and not')],
)
def test_where_the_flushes_are_others_nothing_is_said_of_them(
    tmp_path: Path, store: Path, text: str, told: str
) -> None:
    runs = advised(tmp_path, store, text)
    assert runs["alone"] == []
    assert told in runs["doubt"]


def test_what_can_go_together_need_not_have_the_first_one(tmp_path: Path, store: Path) -> None:
    """The whole of them cannot go, and the first of them stands for the others."""
    runs = advised(tmp_path, store, ONE_OF_THREE)
    assert [each["verdict"] for each in runs["alone"]] == ["holds"] * 3
    assert runs["together"]["verdict"] == "holds"
    assert len(runs["together"]["flushes"]) == 2


def test_a_supervisor_answers_flushes_itself(audit: Audit, tmp_path: Path) -> None:
    run = program(tmp_path, REPLACE)
    ended = audit("--run", run, "--check", "true", "--target", "xsyncfs", "--without-flush", "1")
    assert ended.returncode == ExitCode.USAGE
    assert "a supervisor answers flushes itself" in ended.stderr


def test_advice_on_a_target_rests_on_runs_there(tmp_path: Path, store: Path) -> None:
    """Two flushes in a row stand for each other: each can go, both cannot. The model says so, and so do the runs."""
    check = f"{ACKNOWLEDGED} [ $(cat f) = oldnew ]"
    ended = postcrash(
        tmp_path,
        *("--store", str(store), "needs", "--run", program(tmp_path, APPEND), "--set-up", "printf old >f; sync"),
        *("--check", check, "--advise", "--target", "ext4-current", "--json", "advice.json", "--sarif", "a.sarif"),
    )
    assert ended.returncode == ExitCode.HOLDS, ended.stderr
    (answer,) = json.loads((tmp_path / "advice.json").read_text())["needs"]
    advice = answer["advice_on"]["ext4-current"]
    assert [(each["name"], each["needed"]) for each in advice["flushes"]] == [("fsync", False), ("fdatasync", True)]
    runs = advice["runs"]
    assert [(each["left_out"], each["verdict"]) for each in runs["alone"]] == [
        (['fsync("f")'], "holds"),
        (['fdatasync("f")'], "holds"),
    ]
    assert runs["together"] is None
    assert "no two of them were found that can go together" in ended.stdout
    rules = [each["ruleId"] for each in json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]]
    assert rules == ["needless-flush", "needless-flush-on-target", "needless-flush-on-target"]
