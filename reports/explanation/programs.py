"""Runs the file systems' own tools on an untrusted image in a sandbox.

The sandbox is bubblewrap's: the tool sees the programs of this machine, read-only, and the image, which is a copy.
There is no network and no other process, and time, memory and output are limited. So an image that exploits a bug of a
tool is contained.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from postcrash.targets import program_path

TIMEOUT_S = 10
OUTPUT_BYTES_MAX = 8 << 20
MEMORY_BYTES_MAX = 2 << 30
PACKAGES = {
    "dumpe2fs": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "btrfs": "btrfs-progs",
    "xfs_db": "xfsprogs",
    "xfs_logprint": "xfsprogs",
    "bwrap": "bubblewrap",
}
_PATH = program_path()
_VISIBLE_PATHS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache")


class ToolError(RuntimeError):
    """A program is not installed, or cannot be run in the sandbox. The text names its package, or says why."""


def output(*command: str, image: str, stdin: Sequence[str] = ()) -> str:
    """Returns a program's output about `image`, its last argument. `stdin` has lines of input. Long output is cut.

    The image is writable, because xfs_logprint does not open read-only files. Output before a failure or a timeout is
    returned, too, because the program may have failed at one block of many.
    Raises `ToolError`.
    """
    program, box = _program(command[0]), _box()
    limits = [f"--as={MEMORY_BYTES_MAX}", f"--cpu={TIMEOUT_S}", f"--fsize={OUTPUT_BYTES_MAX}", "--core=0"]
    with tempfile.TemporaryFile() as printed:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["prlimit", *limits, "--", *box, "--bind", image, image, program, *command[1:], image],
                input="".join(f"{line}\n" for line in stdin).encode(),
                stdout=printed,
                stderr=subprocess.DEVNULL,
                env={"PATH": _PATH, "LC_ALL": "C", "DEBUGFS_PAGER": "__none__"},
                timeout=TIMEOUT_S,
                check=False,
            )
        printed.seek(0)
        return printed.read(OUTPUT_BYTES_MAX).decode(errors="backslashreplace")


def _program(name: str) -> str:
    program = shutil.which(name, path=_PATH)
    if program is None:
        raise ToolError(f"{name} is not installed: apt-get install {PACKAGES[name]}")
    return program


@cache
def _box() -> tuple[str, ...]:
    """Returns the command of the sandbox, after a test run."""
    binds = [word for path in _VISIBLE_PATHS for word in ("--ro-bind-try", path, path)]
    isolation = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    box = (_program("bwrap"), *isolation, *binds, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
    result = subprocess.run([*box, "true"], capture_output=True, text=True, env={"PATH": _PATH}, check=False)
    if result.returncode:
        raise ToolError(f"file systems' tools cannot be run in a sandbox: {result.stderr.strip()}")
    return box
