"""Runs the file systems' own tools on an image that may hold anything, with limits on time, memory and output."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress

TIMEOUT_S = 10
OUTPUT_BYTES_MAX = 8 << 20
MEMORY_BYTES_MAX = 2 << 30
PACKAGES = {
    "dumpe2fs": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "btrfs": "btrfs-progs",
    "xfs_db": "xfsprogs",
    "xfs_logprint": "xfsprogs",
}
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


class MissingProgramError(RuntimeError):
    """A program is not installed. The text names its package."""


def output(*command: str, stdin: Sequence[str] = ()) -> str:
    """What the program prints on standard output, with `stdin` as its lines of input. Long output is cut.

    Output before a failure or a timeout counts too, because the program may have failed at one block of many.
    Raises `MissingProgramError`.
    """
    program = shutil.which(command[0], path=_PATH)
    if program is None:
        raise MissingProgramError(f"{command[0]} is not installed: apt-get install {PACKAGES[command[0]]}")
    limits = [f"--as={MEMORY_BYTES_MAX}", f"--cpu={TIMEOUT_S}", f"--fsize={OUTPUT_BYTES_MAX}", "--core=0"]
    with tempfile.TemporaryFile() as printed:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["prlimit", *limits, "--", program, *command[1:]],
                input="".join(f"{line}\n" for line in stdin).encode(),
                stdout=printed,
                stderr=subprocess.DEVNULL,
                env={"PATH": _PATH, "LC_ALL": "C", "DEBUGFS_PAGER": "__none__"},
                timeout=TIMEOUT_S,
                check=False,
            )
        printed.seek(0)
        return printed.read(OUTPUT_BYTES_MAX).decode(errors="backslashreplace")
