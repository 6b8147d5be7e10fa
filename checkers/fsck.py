"""The file system's own checker, run read-only after recovery, finds nothing.

Nothing is known where fsck did not look at the file system: where it was not run, which it is not on a state that does
not mount, and where its status says that it did not get to the end.
"""

import re

from postcrash.checkers.checker import CannotTellError, Finding
from postcrash.model import History, Observation

_NOT_ABOUT_THE_DISK = {
    16: "usage or syntax error",
    32: "cancelled",
    126: "the program cannot be executed",
    127: "no such program",
    128: "shared library error",
}
"""Exit statuses that say nothing of the file system: fsck(8), and sh(1) for 126 and 127."""
_KILLED = 128
"""With the number of a signal added: the agent and sh(1) report so that the program was killed."""
_SIGNAL_MAX = 64
"""Of Linux, signal(7). Greater statuses are the program's own: fsck.f2fs exits with 255 where it cannot go on."""

_ONLY_NOT_UNMOUNTED = (
    re.compile(r"fsck\.fat [\d.]+ .*"),
    re.compile(r"Dirty bit is set\. Fs was not properly unmounted and some data may be corrupt\."),
    re.compile(r" Automatically removing dirty bit\."),
    re.compile(r"Leaving filesystem unchanged\."),
    re.compile(r"\S+: \d+ files, \d+/\d+ clusters"),
    re.compile(r"Cannot initialize conversion from .*|Using internal CP850 conversion table"),
)
"""All that fsck.fat 4.2 says of a file system that is sound, but was in use: no recovery of vfat would note it."""

_OUTPUT_CHARACTERS_MAX = 300


class Fsck:
    """Recovery leaves nothing to repair."""

    name = "fsck"
    statement = "After recovery, the file system's checker exits with status 0 (clean)."
    depends_on: tuple[str, ...] = ()

    def check(self, history: History, observation: Observation) -> Finding | None:
        """Any status but 0. Raises `CannotTellError` where fsck did not get to look at the file system."""
        result = observation.fsck
        if result is None:
            raise CannotTellError("fsck was not run")
        if result.status == 0:
            return None
        output = _shortened(result.output)
        if signal := _signal(result.status):
            raise CannotTellError(f"fsck was killed by signal {signal}: {output}")
        if result.status in _NOT_ABOUT_THE_DISK:
            reason = _NOT_ABOUT_THE_DISK[result.status]
            raise CannotTellError(f"fsck did not run: status {result.status} ({reason}): {output}")
        if result.output and all(_is_harmless(line) for line in result.output.splitlines() if line.strip()):
            return None
        return Finding(self.name, f"fsck exits with status {result.status}: {output}")

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """It was run."""
        return observation.fsck is not None


def _signal(status: int) -> int:
    """The signal that ended the program, 0 if it ended by itself. A negative status is how subprocess reports one."""
    if status < 0:
        return -status
    return status - _KILLED if _KILLED < status <= _KILLED + _SIGNAL_MAX else 0


def _is_harmless(line: str) -> bool:
    return any(pattern.fullmatch(line) for pattern in _ONLY_NOT_UNMOUNTED)


def _shortened(output: str) -> str:
    text = " | ".join(line.strip() for line in output.splitlines() if line.strip())
    return text if len(text) <= _OUTPUT_CHARACTERS_MAX else text[:_OUTPUT_CHARACTERS_MAX] + "…"
