"""The meaning of an fsck program's exit status: fsck(8), and sh(1) for 126 and 127."""

import re

from postcrash.model.observation import FsckResult, Observation

BOOT_STOPS = 4
"""The least status of a repair that ends a boot: fsck(8)."""
_NOT_ABOUT_THE_DISK = {
    16: "usage or syntax error",
    32: "cancelled",
    126: "the program cannot be executed",
    127: "no such program",
    128: "shared library error",
}
"""Exit statuses that say nothing about the file system."""
_KILLED = 128
"""The agent and sh(1) add the number of a signal to this, to report that the program was killed."""
_SIGNAL_MAX = 64
"""The greatest signal of Linux, signal(7). Greater statuses are the program's own: fsck.f2fs gives up with 255."""
_REBOOT = 2
_USAGE = re.compile(r"\busage:", re.IGNORECASE)
_OUTPUT_CHARACTERS_MAX = 300


def why_not_looked(result: FsckResult) -> str:
    """Why the program did not look at the file system, or not to the end. Empty if it did."""
    output = shortened(result.output)
    if signal := _signal(result.status):
        return f"was killed by signal {signal}: {output}"
    if reason := _NOT_ABOUT_THE_DISK.get(result.status):
        return f"did not run: status {result.status} ({reason}): {output}"
    return ""


def why_not_repaired(result: FsckResult) -> str:
    """The same for a program that repairs. fsck.fat(8) exits with 2 if it does not understand its options."""
    if result.status == _REBOOT and _USAGE.search(result.output):
        return f"did not run: status {result.status} (usage error): {shortened(result.output)}"
    return why_not_looked(result)


def why_boot_stops(observation: Observation) -> str:
    """Why nobody would see what was mounted after a repair. Empty if the boot goes on, or if there was no repair."""
    result = observation.repair
    if result is None:
        return ""
    if reason := why_not_repaired(result):
        return f"the program before the mount {reason}"
    if result.status < BOOT_STOPS:
        return ""
    return f"the boot stops at exit status {result.status} of the program before the mount"


def shortened(output: str) -> str:
    """What the program printed, on one line, for messages."""
    text = " | ".join(line.strip() for line in output.splitlines() if line.strip())
    return text if len(text) <= _OUTPUT_CHARACTERS_MAX else text[:_OUTPUT_CHARACTERS_MAX] + "…"


def _signal(status: int) -> int:
    """The signal that ended the program, 0 if it ended by itself. subprocess reports a signal as a negative status."""
    if status < 0:
        return -status
    return status - _KILLED if _KILLED < status <= _KILLED + _SIGNAL_MAX else 0
