"""Where an application's recovery and check run: a copy of the folder in memory, and next to nothing besides.

bubblewrap gives the check its own processes, network (none), devices and file system: the machine's programs and the
folders that it is told of, read-only, and the folder itself. All of it ends with the check, whatever that started.
"""

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from postcrash.apps.folder import Folder

PLACE = "/mnt"
"""Where the folder is, for the application that runs and for its check."""
ACKNOWLEDGED = "/tmp/acknowledged"
"""The file with the lines that the application had said before the crash."""
OUTPUT_BYTES_MAX = 64 << 10
_VISIBLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/python3.11", "/etc/ssl/certs"),
)
"""Programs of the machine, and what they need to start."""
_CGROUPS = Path("/sys/fs/cgroup")
_KILLED = (128 + signal.SIGKILL, -signal.SIGKILL)
"""How timeout(1) ends where the time was over."""
_JOIN = 'echo 0 >"$0" && exec "$@"'
_numbers = itertools.count()


class SandboxError(RuntimeError):
    """No check can be run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one check may use: time, memory of each process, disk (of the folder and of /tmp each), processes."""

    seconds: int = 20
    memory_mib: int = 2048
    disk_mib: int = 256
    processes: int = 256


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a check ended: its exit status, and what it wrote. None: it did not end in its time."""

    status: int | None
    output: str


class Sandbox:
    """Runs checks, one or several at a time. Use it in a `with` statement.

    `visible` are folders that they may read besides the machine's programs. SandboxError where none can be run here.
    """

    def __init__(self, limits: Limits | None = None, visible: Sequence[Path] = ()) -> None:
        self._limits = limits or Limits()
        self._visible = tuple(str(path.resolve()) for path in visible)
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxError("bwrap is not installed: run  apt-get install bubblewrap")
        self._program = program
        self._group = _control_group(self._limits.processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._group is not None:
            with suppress(OSError):  # of a check that is just being ended; it has no processes that could do anything
                self._group.rmdir()

    def run(self, folder: Folder, command: str, acknowledged: Sequence[str]) -> CheckResult:
        """Run the shell command in a copy of `folder`. Raises SandboxError where nothing can be run."""
        lines = "".join(f"{line}\n" for line in acknowledged)
        with tempfile.TemporaryFile() as archive, tempfile.TemporaryFile() as said:
            archive.write(folder.archive)
            archive.seek(0)
            try:
                ended = subprocess.run(
                    self._command(command, lines), stdin=archive, stdout=said, stderr=said, check=False
                )
            except OSError as error:
                raise SandboxError(f"{self._program}: {error.strerror}") from error
            said.seek(0)
            output = said.read(OUTPUT_BYTES_MAX).decode(errors="backslashreplace")
        if ended.returncode and output.startswith("bwrap: "):
            raise SandboxError(output.strip())
        return CheckResult(None if ended.returncode in _KILLED else ended.returncode, output)

    def _command(self, command: str, acknowledged: str) -> list[str]:
        limits = self._limits
        disk = str(limits.disk_mib << 20)
        seen = [word for path in (*_VISIBLE, *self._visible) for word in ("--ro-bind-try", path, path)]
        inside = (
            f"printf %s {shlex.quote(acknowledged)} >{ACKNOWLEDGED} && tar --no-same-owner -xf - "
            f"&& exec </dev/null && exec sh -c {shlex.quote(command)}"
        )
        join = () if self._group is None else ("sh", "-c", _JOIN, str(self._group / "cgroup.procs"))
        return [
            *join,
            *("timeout", "--signal=KILL", str(limits.seconds)),
            *("prlimit", f"--as={limits.memory_mib << 20}", f"--fsize={disk}", f"--cpu={limits.seconds}", "--core=0"),
            *(self._program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--proc", "/proc", "--dev", "/dev", "--size", disk, "--tmpfs", "/tmp", "--size", disk, "--tmpfs", PLACE),
            *seen,
            *("--chdir", PLACE, "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
            *("--setenv", "HOME", "/tmp", "--setenv", "LC_ALL", "C.UTF-8"),
            *("--setenv", "POSTCRASH_ACKNOWLEDGED", ACKNOWLEDGED, "sh", "-c", inside),
        ]


def _control_group(processes: int) -> Path | None:
    """A new control group with at most so many processes; None where this machine lets us make none.

    There, what forks without end is ended with its time.
    """
    for parent in (_CGROUPS / "pids", _CGROUPS):
        group = parent / f"postcrash-{os.getpid()}-{next(_numbers)}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / "pids.max").write_text(str(processes))
        except OSError:
            group.rmdir()
        else:
            return group
    return None
