"""The file system's own checker, run read-only after recovery, finds nothing.

The result is undecided if fsck did not look at the file system. It is not run on a state that does not mount, and its
status may say that it did not get to the end.
"""

import re

from postcrash.checkers.checker import Checker, InShell
from postcrash.model import History, Observation
from postcrash.model.exit_status import shortened, why_not_looked
from postcrash.model.judge import CannotTellError, Opinion, Stage, holds, violated

_ONLY_NOT_UNMOUNTED = (
    re.compile(r"fsck\.fat [\d.]+ .*"),
    re.compile(r"Dirty bit is set\. Fs was not properly unmounted and some data may be corrupt\."),
    re.compile(r" Automatically removing dirty bit\."),
    re.compile(r"Leaving filesystem unchanged\."),
    re.compile(r"\S+: \d+ files, \d+/\d+ clusters"),
    re.compile(r"Cannot initialize conversion from .*|Using internal CP850 conversion table"),
)
"""All that fsck.fat 4.2 says of a file system that is sound but was in use. No recovery of vfat removes this mark."""


class Fsck(Checker):
    """Recovery leaves nothing to repair."""

    name = "fsck"
    statement = "After recovery, the file system's checker exits with status 0 (clean)."
    depends_on: tuple[str, ...] = ()
    looks_at: tuple[str, ...] = ("fsck",)
    needs: Stage = "mount"
    in_shell = InShell("fsck", "nothing that fsck objects to after recovery", "fsck objects")

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Violated by any status but 0. Raises `CannotTellError` if fsck did not look at the file system."""
        result = observation.fsck
        if result is None:
            raise CannotTellError("fsck was not run")
        if result.status == 0:
            return holds()
        if reason := why_not_looked(result):
            raise CannotTellError(f"fsck {reason}")
        lines = [line for line in result.output.splitlines() if line.strip()]
        if lines and all(map(_is_harmless, lines)):
            return holds()
        return violated(f"fsck exits with status {result.status}: {shortened(result.output)}")


def _is_harmless(line: str) -> bool:
    return any(pattern.fullmatch(line) for pattern in _ONLY_NOT_UNMOUNTED)
