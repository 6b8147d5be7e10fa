"""Where an application's recovery and check run: a copy of the folder in memory, and next to nothing besides.

bubblewrap gives the check its own processes, network (none), devices and file system: the machine's programs and the
folders of the application, read-only, and the folder itself. All of it ends with the check, whatever that started.
"""

import errno
import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from postcrash.apps.control_group import ControlGroup
from postcrash.apps.folder import Folder
from postcrash.apps.launcher import Launcher, LauncherEndedError
from postcrash.apps.sandbox_files import SandboxFiles, in_memory
from postcrash.apps.socket_filter import without_sockets
from postcrash.model import Entry, Tree
from postcrash.model.tree import ROOT_PATH

PLACE = "/mnt"
"""Where the folder is, for the application that runs and for its check."""
ACKNOWLEDGED = "/tmp/acknowledged"
"""The file with the lines that the application had said before the crash."""
OUTPUT_BYTES_MAX = 64 << 10
_VISIBLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc/alternatives")
"""Programs of the machine."""
_COPIED = ("/etc/ld.so.cache", "/etc/passwd")
"""Files that programs need to start. To copy them takes less time than to mount them."""
_KILLED = 128 + signal.SIGKILL
"""The status of a check that was killed."""
_FILE_TOO_LARGE = 128 + signal.SIGXFSZ
"""The status of a check that wrote a file beyond its limit."""
_NO_PROGRAM = (126, 127)
"""The statuses of a shell that does not find a program, or cannot run it."""
_NOT_UNPACKED = "the sandbox has no room for the folder, or cannot unpack it"
_UNPACK = f"""{{ said=$(tar --no-same-owner -m -pxf - 2>&1); }} 2>/dev/null || {{
echo {shlex.quote(_NOT_UNPACKED)}; echo "$said" | head -n 5; exit 1; }}; unset said; """
"""What the shell does first with a folder that comes as an archive, over its standard input."""
_BEGUN = "the check begins"
"""Written to the standard input of a check as it begins. Its output would not do, because a check may truncate that."""
_LIMITED = '{ echo 0 >"$0"; ulimit -c 0; ulimit -v "$1"; ulimit -f "$2"; } 2>/dev/null; shift 2; exec "$@"'
"""Joins the control group $0, and takes limits for itself: memory in KiB, sizes of files in blocks of 512."""
_TRIES = 50
_PAUSE_S = 0.1


class SandboxError(RuntimeError):
    """No check can be run here; the text says why."""


class _PassingError(SandboxError):
    """There were too many processes to begin the check, or somebody killed what had started it. It can be run again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one check may use: time, memory of each process, disk (of the folder, and of all else), processes.

    sockets  whether it can make sockets. One that cannot can share a network with others, and to make one takes time.
    """

    seconds: int = 20
    memory_mib: int = 2048
    disk_mib: int = 256
    processes: int = 1024
    sockets: bool = True


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a check ended: its exit status, and what it wrote.

    None: it did not end in its time, was killed, or ran into a limit. `output` then says which limit, if one is known.
    """

    status: int | None
    output: str


@dataclass(frozen=True, slots=True)
class _Starter:
    """What starts checks, one at a time, and the control group of these. None where this machine has none."""

    launcher: Launcher
    group: ControlGroup | None


class Sandbox:
    """Runs checks, one or several at a time. Use it in a `with` statement.

    `visible` are folders that they may read besides the machine's programs. SandboxError where none can be run here.
    """

    def __init__(self, limits: Limits | None = None, visible: Sequence[Path] = ()) -> None:
        self._limits = limits or Limits()
        paths = (*_VISIBLE, *(str(path.resolve()) for path in visible))
        self._seen = [word for path in paths for word in _bound(path)]
        self._copied = {path: Path(path).read_bytes() for path in _COPIED if Path(path).is_file()}
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxError("bwrap is not installed: run  apt-get install bubblewrap")
        self._program = program
        self._network = () if self._limits.sockets else _network()
        """What runs a starter in a network of its own, which all its checks share. Empty: each check has one."""
        self._making = threading.Lock()
        """Held while a check has all its descriptors open, of which a process may not have many."""
        self._groups: list[ControlGroup] = []
        self._starters: queue.SimpleQueue[_Starter] = queue.SimpleQueue()
        """Those that start no check at the moment."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was made for all checks together."""
        while not self._starters.empty():
            self._starters.get().launcher.close()
        while self._groups:
            self._groups.pop().remove()

    def probe(self) -> None:
        """Raises SandboxError if no check can be run on this machine."""
        if self.run(Folder.of(Tree([Entry(ROOT_PATH, "dir")])), "true", ()).status != 0:
            raise SandboxError("the sandbox does not run even `true`")

    def command_in(self, place: Path, command: str) -> list[str]:
        """What runs the shell command in the folder `place` of this machine, which it may change."""
        files = [word for path in _COPIED for word in _bound(path)]
        limits, group = self._limits, self._new_group()
        members = group.members if group else os.devnull
        limited = ("sh", "-c", _LIMITED, str(members), str(limits.memory_mib << 10), str(limits.disk_mib << 11))
        return [*limited, *self._boxed(("--bind", str(place.resolve()), PLACE), files, command)]

    def run(self, folder: Folder, command: str, acknowledged: Sequence[str]) -> CheckResult:
        """Run the shell command in a copy of `folder`. Raises SandboxError where nothing can be run.

        Processes of earlier checks count until the kernel has done away with them. So a check that could not begin for
        that reason is tried again, and so is one that was ended from outside.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._once(folder, command, acknowledged)
            except _PassingError:
                time.sleep(_PAUSE_S)
        return self._once(folder, command, acknowledged)

    def _once(self, folder: Folder, command: str, acknowledged: Sequence[str]) -> CheckResult:
        with ExitStack() as stack:
            try:
                stdin, output_file = (stack.enter_context(in_memory()) for _ in range(2))
                with self._starter() as starter:
                    before = _refused(starter)
                    with self._making:
                        archive = self._start(starter.launcher, (stdin, output_file), folder, command, acknowledged)
                    status = starter.launcher.end()
                    is_refused = _refused(starter) > before
            except OSError as error:
                is_passing = isinstance(error, LauncherEndedError) or error.errno == errno.EAGAIN
                kind = _PassingError if is_passing else SandboxError
                raise kind(f"no check can be run: {error.strerror or error}") from error
            for file in (stdin, output_file):
                file.seek(0)
            has_begun = stdin.read() != archive
            output = output_file.read(OUTPUT_BYTES_MAX).decode(errors="backslashreplace")
        if status is not None and not has_begun:
            raise _not_begun(output.strip()[:500])
        return self._result(status, output, is_refused=is_refused)

    def _start(
        self,
        launcher: Launcher,
        streams: tuple[BinaryIO, BinaryIO],
        folder: Folder,
        command: str,
        acknowledged: Sequence[str],
    ) -> bytes:
        """Start a check. Returns what its standard input, the first of `streams`, holds then. OSError."""
        stdin, output_file = streams
        with SandboxFiles() as files:
            if not self._limits.sockets:
                # Root owns what is in /proc/net, and could change modes there for the checks that follow.
                files.words += ["--share-net", "--remount-ro", "/proc"] if self._network else []
                files.add_filter(without_sockets())
            files.add(ACKNOWLEDGED, "".join(f"{line}\n" for line in acknowledged).encode())
            for path, content in self._copied.items():
                files.add(path, content)
            is_made = files.add_folder(folder, PLACE)
            archive = b"" if is_made else folder.archive
            stdin.write(archive)
            stdin.seek(0)
            check = self._command("" if is_made else _UNPACK, command, files.words)
            launcher.start(check, (stdin.fileno(), output_file.fileno(), *files.files), self._limits.seconds)
        return archive

    def _result(self, status: int | None, output: str, *, is_refused: bool) -> CheckResult:
        """The result of a check that began. If it ran into a limit, its exit status does not count."""
        if is_refused:
            return CheckResult(None, f"the check wanted more than {self._limits.processes} processes")
        if status == _FILE_TOO_LARGE:
            return CheckResult(None, f"the check wrote a file of more than {self._limits.disk_mib} MiB")
        if status in _NO_PROGRAM:
            raise SandboxError(f"the sandbox lacks a program that the check runs: {output.strip()[:500]}")
        is_ended = status is not None and status >= 0 and status != _KILLED
        return CheckResult(status, output) if is_ended else CheckResult(None, "")

    def _new_group(self) -> ControlGroup | None:
        group = ControlGroup.of(self._limits.processes)
        if group is not None:
            self._groups.append(group)
        return group

    @contextmanager
    def _starter(self) -> Iterator[_Starter]:
        """One that starts no check at the moment. There are as many as there were checks at a time. OSError.

        Each has a control group of its own, so that a check does not lack the processes that another one has.
        """
        try:
            starter = self._starters.get_nowait()
        except queue.Empty:
            group, limits = self._new_group(), self._limits
            members = group.members if group else None
            launcher = Launcher(members, limits.memory_mib << 10, limits.disk_mib << 10, self._network)
            starter = _Starter(launcher, group)
        try:
            yield starter
        except OSError as error:
            if error.errno == errno.EAGAIN:  # it was the check that could not begin
                self._starters.put(starter)
            else:
                starter.launcher.close()
            raise
        except BaseException:
            starter.launcher.close()
            raise
        self._starters.put(starter)

    def _command(self, first: str, command: str, files: Sequence[str]) -> list[str]:
        """What runs the check in a folder in memory, after `first`. `files` are the arguments that make files."""
        begins = f"printf %s {shlex.quote(_BEGUN)} >&0; exec </dev/null; eval {shlex.quote(command)}"
        place = ("--size", str(self._limits.disk_mib << 20), "--tmpfs", PLACE)
        more = (*files, "--setenv", "POSTCRASH_ACKNOWLEDGED", ACKNOWLEDGED)
        return self._boxed(place, more, f"{first}{begins}")

    def _boxed(self, place: Sequence[str], more: Sequence[str], command: str) -> list[str]:
        """What runs a shell command in the sandbox.

        `place` are the arguments that put the folder there. `more` come when all mounts are there, so that no mount
        goes by a link that they make.
        """
        size = str(self._limits.disk_mib << 20)
        # In the guest the application is root, to whom modes mean nothing, and who can become another user. Here root
        # can take another name (unshare --map-user), for which Linux asks for CAP_SETFCAP. A user has none of this.
        as_root = ("--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_SETFCAP") if os.geteuid() == 0 else ()
        # bubblewrap is ended when its time is over; all that it has started ends with it. Two checks share nothing
        # that either could change: in one network, the port of an earlier check's server would still be taken.
        return [
            *(self._program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", *as_root),
            *("--size", size, "--tmpfs", "/", "--perms", "1777", "--dir", "/tmp"),
            # Root owns the machine's settings in /proc/sys, and could change them without its rights.
            *("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
            *("--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
            *("--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
            *("--setenv", "HOME", "/tmp", "--setenv", "LC_ALL", "C.UTF-8", *place, *self._seen, *more),
            *("--chdir", PLACE, "sh", "-c", command),
        ]


def _network() -> tuple[str, ...]:
    """The words of a command that runs another one in a new network. Empty if this process may not make one."""
    words = ("unshare", "--net", "--")
    try:
        is_made = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return ()
    return words if is_made else ()


def _not_begun(output: str) -> SandboxError:
    """Why a check did not begin, by what the shell wrote instead. One that cannot fork writes nothing."""
    if not output:
        return _PassingError("the sandbox could not start the check: too many processes")
    is_full = output.startswith("bwrap: ") and os.strerror(errno.EAGAIN) in output
    is_of_folder = output.startswith("bwrap: ") and f" {PLACE}/" in output
    return (_PassingError if is_full else SandboxError)(f"{_NOT_UNPACKED}\n{output}" if is_of_folder else output)


def _refused(starter: _Starter) -> int:
    return starter.group.refused() if starter.group else 0


def _bound(path: str) -> tuple[str, ...]:
    """What has bubblewrap show `path`, if it is there, read-only. Links (/bin to /usr/bin) are cheaper than mounts."""
    if Path(path).is_symlink():
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind", path, path) if Path(path).exists() else ()
