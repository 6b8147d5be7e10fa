"""Programs under strace."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.recorders.strace import COMMAND

Trace = Callable[..., Path]


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
