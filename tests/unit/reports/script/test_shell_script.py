"""Scripts: their shell, and the replay of a log compared with a naive implementation of it."""

import random
import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.model import parse_workload, simulate
from postcrash.model.units import SECTOR_BYTES
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.script.shell_parts import REPLAY
from postcrash.reports.script.shell_script import Cut, FlakeyCut, LogCut, Symptom, script
from postcrash.store.explanation_data import ExplainedWrite
from postcrash.targets import TARGETS, target_named

pytestmark = pytest.mark.slow

TREE = Symptom("tree", ("[ -f A ]", "holds A 4096:141"), ("A after the operations: not there",))
LOST = ExplainedWrite("metadata", "inode table `", sector=8, sectors=16, flags="", during=3, status="lost")
WORKLOAD = parse_workload("creat A\nappend A 4096\n---\ncreat B\nrename B A\ncommit\n", "small")
DISK_SECTORS = 64
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8

Entry = tuple[int, int, int, bytes]
"""Sector, number of sectors, flags, data or the text of a mark."""


@pytest.mark.parametrize("cut", [FlakeyCut(5), LogCut(5, 0), LogCut(5, 1, (LOST,)), LogCut(5, 0, (), False)])
@pytest.mark.parametrize("symptom", [TREE, Symptom("mount", (), ()), Symptom("fsck", (), ())])
def test_every_form_is_shell_for_every_target(cut: Cut, symptom: Symptom) -> None:
    for target in TARGETS:
        if target.helper or target.aged_mib is not None:
            with pytest.raises(NoCommandError, match=r"mounted by a program|is aged"):
                script("t", target, WORKLOAD, simulate(WORKLOAD), symptom, cut)
            continue
        text = script("a title\nof two lines", target, WORKLOAD, simulate(WORKLOAD), symptom, cut)
        checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\v", "\f"])
def test_line_ends_in_what_a_crash_left_add_no_command(end: str) -> None:
    """An xattr, a link's target or a name can have them, and a stranger's bundle can have any."""
    evil = f"said{end}touch here{end}#"
    symptom, lost = Symptom("tree", ("[ -f A ]",), (evil,)), replace(LOST, name=evil)
    text = script(evil, target_named("xfs"), WORKLOAD, simulate(WORKLOAD), symptom, LogCut(5, 1, (lost,)))
    mentions = [line for line in re.split("[\n\r]", text) if "touch here" in line]
    assert len(mentions) == 3
    assert all("#" in line.partition("touch here")[0] for line in mentions)


def test_an_operation_in_progress_runs_behind_the_mark() -> None:
    inside, after = (
        script("t", target_named("xfs"), WORKLOAD, simulate(WORKLOAD), TREE, LogCut(5, 0, (), is_inside))
        for is_inside in (True, False)
    )
    assert "fsync" in function(inside, "last_operation") and "fsync" not in function(inside, "operations")
    assert "fsync" not in function(after, "last_operation") and "fsync" in function(after, "operations")


def test_a_handle_does_not_reach_from_one_shell_to_the_next() -> None:
    held = parse_workload("creat B\n---\nopen B\nrename B C\nwrite @B 0 9\nfsync @B\n", "held")
    text = script("t", target_named("xfs"), held, simulate(held), TREE, LogCut(5, 0, (), is_inside=False))
    assert 'xfs_io -c "fsync" /proc/self/fd/$held_B' in function(text, "operations")
    with pytest.raises(NoCommandError, match=r"`fsync @B` is about a file that operations before the last opened"):
        script("t", target_named("xfs"), held, simulate(held), TREE, LogCut(5, 0))


def test_a_lost_range_is_named_once_with_what_it_is() -> None:
    cut = LogCut(5, 1, (LOST, LOST))
    text = script("t", target_named("xfs"), WORKLOAD, simulate(WORKLOAD), TREE, cut)
    assert text.count("    8+16  # inode table `") == 1
    assert 'replay 1 "${LOST[@]}"' in text


def function(text: str, name: str) -> str:
    return text.partition(f"\n{name}() (")[2].partition("\n)")[0]


def log_of(entries: list[Entry]) -> bytes:
    log = struct.pack("<QQQL", 0x6A736677736872, 1, len(entries), SECTOR_BYTES).ljust(SECTOR_BYTES, b"\0")
    for sector, sectors, flags, data in entries:
        text = data if flags & MARK else b""
        log += (struct.pack("<QQQQ", sector, sectors, flags, len(text)) + text).ljust(SECTOR_BYTES, b"\0")
        log += b"" if flags & (MARK | DISCARD) else data
    return log


def replayed_naively(entries: list[Entry], flushes: int, lost: list[tuple[int, int]]) -> bytes:
    """The state at flush number `flushes`, then the writes up to the next flush, except for the sectors in `lost`."""
    marks = [data if flags & MARK else b"" for _, _, flags, data in entries]
    start, end = marks.index(b"cut"), marks.index(b"end")
    flushing = [start, *(i for i in range(start, end) if entries[i][2] & (FLUSH | FUA)), end]
    stable = flushing[min(flushes, len(flushing) - 1)] if flushes >= 0 else start
    last = flushing[min(flushes + 1, len(flushing) - 1)]
    disk = bytearray(DISK_SECTORS * SECTOR_BYTES)
    for index in range(last + 1):
        sector, sectors, flags, data = entries[index]
        for each in range(sectors) if not flags & (MARK | DISCARD) else ():
            if index <= stable or not any(first <= sector + each < first + count for first, count in lost):
                disk[(sector + each) * SECTOR_BYTES : (sector + each + 1) * SECTOR_BYTES] = data[
                    each * SECTOR_BYTES : (each + 1) * SECTOR_BYTES
                ]
    return bytes(disk)


def random_entries(chance: random.Random) -> list[Entry]:
    entries: list[Entry] = []
    for _ in range(chance.randrange(2, 16)):
        sector, sectors = chance.randrange(DISK_SECTORS - 8), chance.randrange(1, 8)
        flags = chance.choice((0, 0, FUA, FLUSH, DISCARD))
        sectors = 0 if flags == FLUSH else sectors
        entries.append((sector, sectors, flags, chance.randbytes(sectors * SECTOR_BYTES)))
    marks = sorted(chance.sample(range(len(entries) + 1), 2))
    entries.insert(marks[1], (0, 0, MARK, b"end"))
    entries.insert(marks[0], (0, 0, MARK, b"cut"))
    return entries


@pytest.mark.parametrize("seed", range(30))
def test_replay_does_what_a_naive_reading_says(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    entries = random_entries(chance)
    flushes = chance.randrange(-1, 4)
    start, end = (entries.index((0, 0, MARK, mark)) for mark in (b"cut", b"end"))
    reached = sum(bool(flags & (FLUSH | FUA)) for _, _, flags, _ in entries[start:end])
    is_reached = flushes <= reached
    lost = [] if flushes < 0 else [(chance.randrange(30), chance.randrange(1, 9)) for _ in range(chance.randrange(3))]
    (tmp_path / "log").write_bytes(log_of(entries))
    (tmp_path / "disk").write_bytes(bytes(DISK_SECTORS * SECTOR_BYTES))
    body = "replay() {" + REPLAY.partition("replay() {")[2].partition("\nEOF\n")[0] + "\nEOF\n}\n"
    call = f"{body}LOG={tmp_path}/log DISK={tmp_path}/disk\nreplay {flushes} {' '.join(f'{a}+{n}' for a, n in lost)}\n"
    ran = subprocess.run(["bash", "-euc", call], stderr=subprocess.PIPE, encoding="utf-8")
    assert (ran.returncode == 0) == is_reached
    if not is_reached:  # on another kernel: then the script cannot say whether it has the bug
        assert ran.stderr == f"this kernel sent {reached} flushes after the mark, and not {flushes}\n"
        return
    assert (tmp_path / "disk").read_bytes() == replayed_naively(entries, flushes, lost)
