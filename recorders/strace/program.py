"""Runs a program under strace(1)."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

STRING_BYTES_MAX = 1 << 20
"""How many bytes strace prints of each string. Longer writes are mapped without their bytes."""

COMMAND = (
    "strace",
    "-f",
    "-ttt",
    "-y",
    "-xx",
    "-s",
    str(STRING_BYTES_MAX),
    "-e",
    "trace=%file,%desc,%process,%memory,sync,io_uring_setup,io_setup,io_submit",
    "-e",
    "signal=none",
)
"""How strace must be run for `import_strace`. `-o FILE` and the program follow these arguments."""


class StraceMissing(Exception):
    """There is no strace on this machine."""


def run_under_strace(program: Sequence[str], output: Path, directory: Path, *, stdout: IO[str] | None) -> int:
    """Run a program in `directory` to its end and write its trace to `output`. None: it has our standard output.

    Returns its exit code, or minus the signal that ended it. Raises `StraceMissing`.
    """
    if shutil.which(COMMAND[0]) is None:
        raise StraceMissing("strace is not installed")
    command = [*COMMAND, "-o", str(output), "--", *program]
    return subprocess.run(command, cwd=directory, stdout=stdout, check=False).returncode
