"""Where a workload runs: a mounted file system, inside or outside of xsync."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from postcrash.harness.guests.binaries import find_binary
from side_by_side.disks import run
from side_by_side.settings import Setting

ADDRESS = "10.111.77.2"
"""Of a server, in a network namespace of its own."""
_OUTSIDE = "10.111.77.1"
_NAMESPACE = "xsync-bench"
_SECONDS_MAX = 3600
PYTHON = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
"""Seen in a box, too, which a virtual environment below /tmp would not be."""


class WorkloadError(RuntimeError):
    """A workload has failed; the message has what it said."""


@dataclass(frozen=True)
class Run:
    """A command that has ended.

    seconds  until its end was seen
    cpu_s    seconds that it and its processes have computed, xsync's included. On a busy machine they vary less
    """

    seconds: float
    cpu_s: float
    output: str


def cpu_s() -> float:
    """Seconds that processes below this one have computed, as far as they have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Site:
    """A file system at `folder`, mounted as `setting` says."""

    folder: Path
    setting: Setting

    def command(self, *words: str | Path, user: str = "", network: bool = False) -> list[str]:
        """The command that runs `words` here, as that user, and with `ADDRESS` if it needs a network."""
        if self.setting.supervisor is None:
            prefix = ["ip", "netns", "exec", _NAMESPACE] if network else []
            prefix += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        else:
            prefix = [str(find_binary("xsync")), "run", "--fs", str(self.folder), *self.setting.supervisor]
            prefix += ["--user", user] if user else []
            prefix += ["--network", "tun", "--address", ADDRESS] if network else []
            prefix += ["--"]
        return [*prefix, *map(str, words)]

    def run(self, *words: str | Path, user: str = "") -> Run:
        """Run a command to its end. Raises WorkloadError."""
        started, cpu = time.monotonic(), cpu_s()
        with self.started(*words, user=user) as process:
            output, _ = process.communicate(timeout=_SECONDS_MAX)
        seconds = time.monotonic() - started
        if process.returncode != 0:
            raise WorkloadError(f"{' '.join(map(str, words))}: status {process.returncode}\n{output[-2000:]}")
        return Run(seconds, cpu_s() - cpu, output)

    @contextmanager
    def started(self, *words: str | Path, user: str = "", network: bool = False) -> Iterator[subprocess.Popen[str]]:
        """A command that runs here until the end of the context."""
        process = subprocess.Popen(
            self.command(*words, user=user, network=network),
            cwd=self.folder if self.setting.supervisor is None else "/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                process.terminate()
                process.wait()
                with contextlib.suppress(ProcessLookupError):  # what it has started, too, such as a compiler
                    os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def server(self, *words: str | Path) -> Iterator[None]:
        """A server at `ADDRESS`, which this machine reaches by an Ethernet of two ends, or by the TUN of xsync."""
        if self.setting.supervisor is not None:
            with self.started(*words, network=True):
                yield
            return
        run("ip", "netns", "add", _NAMESPACE)
        try:
            run("ip", "link", "add", "xsyncbench0", "type", "veth", "peer", "name", "inside", "netns", _NAMESPACE)
            run("ip", "address", "add", f"{_OUTSIDE}/30", "dev", "xsyncbench0")
            run("ip", "link", "set", "xsyncbench0", "up")
            run("ip", "-n", _NAMESPACE, "address", "add", f"{ADDRESS}/30", "dev", "inside")
            run("ip", "-n", _NAMESPACE, "link", "set", "inside", "up")
            with self.started(*words, network=True):
                yield
        finally:
            run("ip", "netns", "delete", _NAMESPACE)
