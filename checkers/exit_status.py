"""What the exit status of an fsck program says: fsck(8), and sh(1) for 126 and 127."""

import re

from postcrash.model import FsckResult

_NOT_ABOUT_THE_DISK = {
    16: "usage or syntax error",
    32: "cancelled",
    126: "the program cannot be executed",
    127: "no such program",
    128: "shared library error",
}
"""Exit statuses that say nothing of the file system."""
_KILLED = 128
"""With the number of a signal added: the agent and sh(1) report so that the program was killed."""
_SIGNAL_MAX = 64
"""Of Linux, signal(7). Greater statuses are the program's own: fsck.f2fs exits with 255 where it cannot go on."""
_REBOOT = 2
_USAGE = re.compile(r"\busage:", re.IGNORECASE)
_OUTPUT_CHARACTERS_MAX = 300


def why_not_looked(result: FsckResult) -> str:
    """Why the program did not get to look at the file system, or not to the end; empty if it did."""
    output = shortened(result.output)
    if signal := _signal(result.status):
        return f"was killed by signal {signal}: {output}"
    if reason := _NOT_ABOUT_THE_DISK.get(result.status):
        return f"did not run: status {result.status} ({reason}): {output}"
    return ""


def why_not_repaired(result: FsckResult) -> str:
    """The same of one that is to repair. fsck.fat(8) exits with 2 where it does not understand its options."""
    if result.status == _REBOOT and _USAGE.search(result.output):
        return f"did not run: status {result.status} (usage error): {shortened(result.output)}"
    return why_not_looked(result)


def shortened(output: str) -> str:
    """What it printed, on one line, for messages."""
    text = " | ".join(line.strip() for line in output.splitlines() if line.strip())
    return text if len(text) <= _OUTPUT_CHARACTERS_MAX else text[:_OUTPUT_CHARACTERS_MAX] + "…"


def _signal(status: int) -> int:
    """The signal that ended the program, 0 if it ended by itself. A negative status is how subprocess reports one."""
    if status < 0:
        return -status
    return status - _KILLED if _KILLED < status <= _KILLED + _SIGNAL_MAX else 0
