"""Control groups of Linux, which limit the number of processes of a check and count the attempts to exceed it."""

import itertools
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_TRIES = 50
_PAUSE_S = 0.1
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The folder of a control group with a limit on processes."""

    folder: Path

    @classmethod
    def of(cls, processes: int) -> "ControlGroup | None":
        """Make a group with this limit on processes. None if this machine does not allow it.

        Without a group, a fork bomb ends with the time of its check.
        """
        for parent in (_CGROUPS / "pids", _CGROUPS):
            folder = parent / f"postcrash-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                (folder / "pids.max").write_text(str(processes))
            except OSError:
                folder.rmdir()
            else:
                return cls(folder)
        return None

    @property
    def members(self) -> Path:
        """The file into which a process writes 0 to join the group."""
        return self.folder / "cgroup.procs"

    def refused(self) -> int:
        """How often the kernel refused to start a process because of the limit. 0 if it does not count them."""
        with suppress(OSError, ValueError):
            words = (self.folder / "pids.events").read_text().split()
            return int(dict(zip(words[::2], words[1::2], strict=True)).get("max", "0"))
        return 0

    def remove(self) -> None:
        """Remove the group. Processes that are just being ended are in it for a moment."""
        for _ in range(_TRIES):
            with suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(_PAUSE_S)
