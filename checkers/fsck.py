"""The file system's own checker, run read-only after recovery, finds nothing.

Not checked: anything where fsck was not run (`Observation.fsck` is None).
"""

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

_OUTPUT_CHARACTERS_MAX = 300


class Fsck:
    """Recovery leaves nothing to repair."""

    name = "fsck"
    statement = "After recovery, the file system's checker exits with status 0 (clean)."

    def check(self, history: History, observation: Observation) -> Finding | None:
        """Any status but 0. Raises `CannotTellError` where fsck did not get to look at the file system."""
        result = observation.fsck
        if result is None or result.status == 0:
            return None
        output = _shortened(result.output)
        if result.status < 0:
            raise CannotTellError(f"fsck was killed by signal {-result.status}: {output}")
        if result.status in _NOT_ABOUT_THE_DISK:
            reason = _NOT_ABOUT_THE_DISK[result.status]
            raise CannotTellError(f"fsck did not run: status {result.status} ({reason}): {output}")
        return Finding(self.name, f"fsck exits with status {result.status}: {output}")


def _shortened(output: str) -> str:
    text = " | ".join(line.strip() for line in output.splitlines() if line.strip())
    return text if len(text) <= _OUTPUT_CHARACTERS_MAX else text[:_OUTPUT_CHARACTERS_MAX] + "…"
