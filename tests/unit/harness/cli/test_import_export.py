"""`postcrash import` and `postcrash export`: what they print, keep and refuse."""

import json
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, write_recording

from ....vm.command import leftovers
from .conftest import postcrash

pytestmark = pytest.mark.slow

LOGS = Path(__file__).parents[2] / "recorders/logs"
OPERATIONS = "creat A\n---\nwrite A 0 512\nsync\n"


def one_line(result: subprocess.CompletedProcess[str], code: int) -> str:
    """The single line that a failed run must end with."""
    assert result.returncode == code, result.stderr
    (line,) = result.stderr.splitlines()
    return line.removeprefix("postcrash: ")


def marks_in(log: Path) -> list[str]:
    content = log.read_bytes()
    at, marks = 512, []
    for _ in range(struct.unpack_from("<Q", content, 16)[0]):
        _, sectors, flags, length = struct.unpack_from("<QQQQ", content, at)
        if flags & 8:
            marks.append(content[at + 32 : at + 32 + length].decode())
        at += 512 + (0 if flags & 4 else sectors * 512)
    return marks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the base image of both logs."""
    (tmp_path / "base").write_bytes(bytes(65536))
    return tmp_path


def test_import_says_what_it_found_and_what_is_lost(folder: Path) -> None:
    result = postcrash(folder, "import", LOGS / "linux-6.1.log", "base")
    assert (result.returncode, result.stderr) == (0, "")
    first, second, *lost = result.stdout.splitlines()
    assert re.fullmatch(r"r-\w{16} on b-\w{16}: 11 entries: 6 writes \(1 FUA\), 2 flushes, 1 discards, 2 marks", first)
    assert second == "crash intervals: 4; crash states: 16 (device model cache)"
    assert all(line.startswith("lost: ") for line in lost)
    text = result.stdout
    assert "no submission times" in text and "FUA writes (1 here)" in text and "no operations" in text


def test_import_of_qemus_log_says_that_fua_may_be_lost(folder: Path) -> None:
    report = json.loads(postcrash(folder, "import", LOGS / "qemu-7.2.log", "base", "--json", "-").stdout)
    assert (report["writes"], report["fua_writes"], report["marks"]) == (4, 0, [])
    assert any("QEMU" in sentence for sentence in report["lost"])
    assert (report["intervals"], report["states"]) == (4, "11")


def test_an_import_is_in_the_store_and_shares_nothing_with_the_user(folder: Path) -> None:
    report = json.loads(postcrash(folder, "import", LOGS / "linux-6.1.log", "base", "--json", "-").stdout)
    store = folder / ".postcrash"
    recording = Recording(store / f"recordings/{report['recording']}.pcr")
    metadata = json.loads(recording.metadata)
    assert metadata["marks"] == [{"event": 1, "text": "two-writes"}, {"event": 19, "text": "dm-log-writes-end"}]
    assert (metadata["imported"], metadata["base"]) == ("dm-log-writes", report["base"])
    assert metadata["lost"] == report["lost"]
    base = store / f"bases/{report['base']}.img"
    assert base.read_bytes() == bytes(65536)
    assert not os.path.samefile(base, folder / "base")
    again = json.loads(postcrash(folder, "import", LOGS / "linux-6.1.log", "base", "--json", "-").stdout)
    assert again == report
    assert leftovers(folder) == []


def test_what_is_imported_can_be_exported_again(folder: Path) -> None:
    log = LOGS / "linux-6.1.log"
    report = json.loads(postcrash(folder, "import", log, "base", "--json", "-").stdout)
    result = postcrash(folder, "export", report["recording"], "out")
    assert result.stdout.startswith("out: 11 entries, 2 of them marks\nlost: when each request was submitted")
    assert (folder / "out").read_bytes() == log.read_bytes()


def test_operations_become_marks(folder: Path) -> None:
    write = ("write", 0, 8, b"A" * 512, False, False)
    events: list[tuple[Any, ...]] = [
        *(("started", 0), ("returned", 0, 0), ("durable",), ("started", 1), write, ("complete", 0)),
        *(("returned", 1, 28), ("started", 2), ("flush", 1), ("write", 2, 8, b"B" * 512, False, False)),
    ]
    write_recording(folder / "some.pcr", 128, json.dumps({"text": OPERATIONS}), events)
    report = json.loads(postcrash(folder, "export", "some.pcr", "out", "--json", "-").stdout)
    assert marks_in(folder / "out") == [
        *("op 0 started: creat A", "op 0 returned: creat A", "set-up is durable", "op 1 started: write A 0 512"),
        *("op 1 returned with ENOSPC: write A 0 512", "op 2 started: sync"),
    ]
    assert (report["entries"], report["marks"]) == (7, 6)
    assert report["lost"][1:] == ["1 requests that were never completed, though a crash may keep them"]


def test_operations_without_a_workload_are_marked_by_their_number(folder: Path) -> None:
    write_recording(folder / "some.pcr", 128, '{"text": "no such operation"}', [("started", 0), ("returned", 0, 0)])
    assert postcrash(folder, "export", "some.pcr", "out").returncode == 0
    assert marks_in(folder / "out") == ["op 0 started", "op 0 returned"]


@pytest.mark.parametrize(
    ("log", "base", "expected"),
    [
        ("absent", "base", "absent: No such file or directory (os error 2)"),
        (".", "base", ".: it is neither a file nor a block device"),
        ("base", "base", "base: not a log of dm-log-writes: its superblock was never written"),
        ("good", "absent", "absent: No such file or directory"),
        ("good", ".", ".: it is neither a file nor a block device"),
        ("good", "empty", "empty: 0 bytes are no disk image: it must be whole sectors of 512 bytes"),
        (
            "good",
            "small",
            "good: not a log of dm-log-writes: entry 1 of 11: 1 sectors of 512 bytes from sector 8 do not fit",
        ),
        (
            "short",
            "base",
            "short: not a log of dm-log-writes: entry 2 of 11: the log ends too early: 512 bytes are needed",
        ),
    ],
)
def test_import_refuses_in_one_line(folder: Path, log: str, base: str, expected: str) -> None:
    content = (LOGS / "linux-6.1.log").read_bytes()
    for name, data in [("good", content), ("short", content[:2100]), ("empty", b""), ("small", bytes(512))]:
        (folder / name).write_bytes(data)
    assert one_line(postcrash(folder, "import", log, base), 4).startswith(expected)
    assert list(folder.glob(".postcrash/*/*")) == []


def test_export_refuses_in_one_line(folder: Path) -> None:
    write_recording(folder / "good.pcr", 128, "{}", [("durable",)])
    write_recording(folder / "marks.pcr", 128, '{"imported": "dm-log-writes", "marks": [{"event": 9, "text": 1}]}', [])
    for source, out, code, expected in [
        ("r-0123456789abcdef", "out", 4, "there is no recording r-0123456789abcdef"),
        ("absent", "out", 4, "absent: No such file or directory"),
        ("r-0123", "out", 4, "r-0123: No such file or directory"),
        ("base", "out", 4, "base: not a recording"),
        ("marks.pcr", "out", 4, "the metadata has a broken mark: {'event': 9, 'text': 1}"),
        ("good.pcr", ".", 4, ".: it is there already and is not a file"),
        ("good.pcr", "no/such/folder", 3, "cannot write no/such/folder: No such file or directory"),
    ]:
        assert expected in one_line(postcrash(folder, "export", source, out), code)
    assert not (folder / "out").exists()
    assert leftovers(folder) == []


def test_export_never_replaces_a_device_or_a_pipe(folder: Path) -> None:
    write_recording(folder / "x.pcr", 8, "{}", [("durable",)])
    os.mkfifo(folder / "pipe")
    assert "pipe: it is there already and is not a file" in one_line(postcrash(folder, "export", "x.pcr", "pipe"), 4)
    assert (folder / "pipe").is_fifo()
