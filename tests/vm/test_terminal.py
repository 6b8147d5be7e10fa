"""Colours and progress on a terminal, and none of them where nobody asked for them."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/rename-replace.ops"
P5 = ("--judge", "P5")
COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-9]m")
CURSOR = b"\x1b[?25l"
"""Hides the cursor: what a bar of progress begins with."""


def on_terminal(folder: Path, *options: str, **environment: str) -> bytes:
    """What `check` prints on a terminal."""
    program = Path(sys.executable).with_name("postcrash")
    command: list[str | Path] = [program, *options, "check", EXAMPLE, "--target", "ext4-original", *P5, "--fresh"]
    ours, theirs = pty.openpty()
    without = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
    environment = {**without, "TERM": "xterm", **environment}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert process.wait() == 1, printed
    return printed


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the last process that has it open has ended
        return b""


def test_a_terminal_shows_colours_and_progress(tmp_path: Path) -> None:
    printed = on_terminal(tmp_path)
    assert COLOUR.search(printed) and CURSOR in printed


def test_no_color_means_no_colours(tmp_path: Path) -> None:
    printed = on_terminal(tmp_path, NO_COLOR="1")
    assert b"P5" in printed and not COLOUR.search(printed)


def test_quiet_means_no_progress(tmp_path: Path) -> None:
    printed = on_terminal(tmp_path, "--quiet")
    assert b"P5" in printed and CURSOR not in printed


def test_a_pipe_gets_neither(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("postcrash")
    command: list[str | Path] = [program, "check", EXAMPLE, "--target", "ext4-original", *P5]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    assert done.returncode == 1 and b"P5" in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr
