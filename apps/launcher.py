"""A small process that starts checks, one at a time. Its standard input is a socket, over which it gets each of them.

It stands in the checks' control group and has their limits, so that each check has them from its beginning. To move
every check into the group would take longer than most checks do, because the kernel waits for all CPUs then. It imports
little, because it is started anew for each sandbox. `Launcher` is the other end.
"""

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

REQUEST_BYTES_MAX = 1 << 20
EXTRA = 64
"""The descriptor of a check's third file. The numbers of those after it follow. Nothing else gets so high a number."""
DESCRIPTORS_MAX = 48
"""The most files that a check can be given, its standard input and its output included."""
LATE = "late"
"""The answer for a check that did not end in its time. Others: its exit status; in a list, the errno of its start."""
_ENDED = "what starts the checks has ended"


class LauncherEndedError(OSError):
    """The process that starts checks has ended, and with it the check that it had started."""


class Launcher:
    """Starts a process that starts checks, one at a time, with these limits. OSError.

    members                file by which one joins the control group of the checks (`ControlGroup`)
    memory_kib, file_kib  of each process, and of each file
    within                 words of a command that runs the process
    """

    def __init__(self, members: Path | None, memory_kib: int, file_kib: int, within: Sequence[str] = ()) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES_MAX)
        with theirs:
            limits = (str(members or ""), str(memory_kib << 10), str(file_kib << 10))
            self._process = subprocess.Popen(
                [*within, sys.executable, "-I", "-S", "-X", "utf8", __file__, *limits],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """End the process, and with it the check that it has started."""
        self._socket.close()
        self._process.wait()

    def start(self, command: Sequence[str], files: Sequence[int], seconds: float) -> None:
        """Have `command` run; `files` are its standard input, its output, and those that it finds from `EXTRA` on.

        They may be closed then. The command may take `seconds`. LauncherEndedError, or another OSError.
        """
        request = json.dumps([list(command), seconds]).encode()
        try:
            socket.send_fds(self._socket, [request], list(files))
        except ConnectionError as error:
            raise LauncherEndedError(_ENDED) from error

    def end(self) -> int | None:
        """Wait for the end of the command that was started.

        Returns its status as subprocess has it; None if it did not end in its time. LauncherEndedError, or another
        OSError if it cannot be started.
        """
        answer = b""
        with suppress(ConnectionError):
            answer = self._socket.recv(REQUEST_BYTES_MAX)
        if not answer:
            raise LauncherEndedError(_ENDED)
        result = json.loads(answer)
        if isinstance(result, list):
            raise OSError(result[0], os.strerror(result[0]))
        return None if result == LATE else int(result)


def _serve(orders: socket.socket) -> None:
    while True:
        request, files, _, _ = socket.recv_fds(orders, REQUEST_BYTES_MAX, DESCRIPTORS_MAX)
        if not request:
            return
        command, seconds = json.loads(request)
        answer: int | str | list[int | None]
        try:
            answer = _run(command, files, seconds, orders)
        except OSError as error:
            answer = [error.errno]
        finally:
            for file in files:
                os.close(file)
        orders.send(json.dumps(answer).encode())


def _run(command: list[str], files: list[int], seconds: float, orders: socket.socket) -> int | str:
    stdin, output, *others = files
    extra = [os.dup2(file, number) for number, file in enumerate(others, EXTRA)]
    try:
        process = subprocess.Popen(command, stdin=stdin, stdout=output, stderr=output, pass_fds=extra, process_group=0)
    finally:
        for file in extra:
            os.close(file)
    try:
        return process.wait() if _ends(process.pid, seconds, orders) else LATE
    finally:
        if process.returncode is None:  # bubblewrap's child does not end with it while it makes the sandbox
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ends(process: int, seconds: float, orders: socket.socket) -> bool:
    """Whether the process ends within `seconds`, and before the other end of `orders` is closed."""
    ended = os.pidfd_open(process)
    try:
        waiting = select.poll()
        waiting.register(ended, select.POLLIN)
        waiting.register(orders, select.POLLHUP)
        return ended in dict(waiting.poll(seconds * 1000))
    finally:
        os.close(ended)


def _main(members: str, memory_bytes: int, file_bytes: int) -> None:
    if members:
        Path(members).write_text("0")
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
    ):
        hard = resource.getrlimit(kind)[1]
        least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (least, least))
    _serve(socket.socket(fileno=0))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
