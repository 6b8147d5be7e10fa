"""Programs under strace, and one run as the crash disk and dm-log-writes see it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, export_dm_log_writes, write_recording
from postcrash.recorders import crash_disk, dm_log_writes
from postcrash.recorders.agreement import compare
from postcrash.recorders.matches import Agreement
from postcrash.recorders.strace import COMMAND
from postcrash.recorders.trace import Trace as RecordedTrace

Trace = Callable[..., Path]
Event = tuple[Any, ...]
Steps = list[list[Event]]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Runs a Python program, given as text or as file and arguments, under strace. Gives the file with its trace."""

    def run(program: str | Path, *arguments: str | Path, options: tuple[str, ...] = COMMAND[1:]) -> Path:
        output = tmp_path / "strace.out"
        source = ["-c", program] if isinstance(program, str) else [program]
        command = ["strace", *options, "-o", output, sys.executable, "-ESs", *source, *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
        return output

    return run


DISK_SECTORS = 64


def block(letter: str, blocks: int = 1) -> bytes:
    return letter.encode() * 4096 * blocks


def recording(folder: Path, name: str, events: list[Event]) -> Recording:
    write_recording(folder / name, DISK_SECTORS, "{}", events)
    return Recording(folder / name)


def log_of(folder: Path, events: list[Event]) -> RecordedTrace:
    """The log that dm-log-writes makes of these events, marks included."""
    source, log = recording(folder, "above.pcr", events), folder / "log"
    marks = [(number, f"{event[0]}:{event[1]}") for number, event in enumerate(events) if event[0] in MARKS]
    export_dm_log_writes(source, log, marks)
    return dm_log_writes.trace(log, DISK_SECTORS)


def compared(folder: Path, below: list[Event], above: list[Event], *, is_threaded: bool = False) -> Agreement:
    ours = crash_disk.trace(recording(folder, "below.pcr", below))
    return compare(ours, log_of(folder, above), is_threaded=is_threaded)


def numbered(steps: Steps) -> list[Event]:
    """One list of events, with the ids of requests from 0 in their order."""
    return [("durable",), *((event[0], id, *event[2:]) for id, events in enumerate(steps) for event in events)]


MARKS = ("started", "returned")
ABOVE: list[Event] = [
    ("durable",),
    ("started", 0),
    ("write", 0, 0, block("a", 2), False, False),
    ("complete", 0),
    ("write", 1, 16, block("b"), False, False),
    ("write", 2, 24, block("c"), False, False),
    ("complete", 1),
    ("complete", 2),
    ("flush", 3),
    ("complete", 3),
    ("write", 4, 32, block("d"), True, False),
    ("complete", 4),
    ("returned", 0, 0),
    ("started", 1),
    ("write", 5, 0, block("e"), False, False),
    ("complete", 5),
    ("zero", 6, 40, 8, True),
    ("complete", 6),
    ("returned", 1, 0),
]
BELOW: list[Event] = [
    ("durable",),
    ("started", 0),
    ("write", 0, 0, block("a"), False, False),
    ("complete", 0),
    ("write", 1, 8, block("a"), False, False),
    ("complete", 1),
    ("write", 2, 16, block("b") + block("c"), False, False),
    ("complete", 2),
    ("flush", 3),
    ("complete", 3),
    ("write", 4, 32, block("d"), False, False),
    ("complete", 4),
    ("flush", 5),
    ("complete", 5),
    ("returned", 0, 0),
    ("started", 1),
    ("write", 6, 0, block("e"), False, False),
    ("complete", 6),
    ("zero", 7, 40, 8, True),
    ("complete", 7),
    ("returned", 1, 0),
]
