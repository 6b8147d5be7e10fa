"""Recovery as distributions do it, compared with mounting alone. A program repairs the disk; then it is mounted.

All that holds for a file system that is mounted alone must hold after a repair too. If a judge objects to a state after
a repair, the state is mounted alone once more. The finding says what the judge's verdict is then.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from postcrash.harness.errors import UsageError
from postcrash.store.records import Finding
from postcrash.targets import RecoveryKind, Target

Recovery = Literal["mount", "repair", "both"]
RECOVERIES: dict[Recovery, str] = {
    "mount": "by mounting it alone",
    "repair": "as distributions do, by fsck -a and then mounting it",
    "both": "each in turn",
}
ONLY_REPAIRED = "; mounted alone, it is not so"
"""Ends the message of a finding that mounting alone does not show."""
ALONE_TOO = "; mounted alone, it is no better"


def ways(target: Target, recovery: Recovery) -> list[bool]:
    """The ways to recover, each by whether it repairs. UsageError if a repair is asked for and the target has none."""
    if recovery == "repair" and not target.repair:
        raise UsageError(f"--recovery repair: nothing is run before {target.name} is mounted")
    if target.needs_repair or not target.repair:
        return [False]
    return {"mount": [False], "repair": [True], "both": [False, True]}[recovery]


def mounted_alone(recover: RecoveryKind, target: Target) -> RecoveryKind | None:
    """The same recovery without the repair; None where there was none, or where nothing mounts without one."""
    if target.needs_repair or not recover.is_repaired:
        return None
    return replace(recover, repair=())


def said_repair(recover: RecoveryKind) -> str:
    """The program that runs before the mount, with its options: `e2fsck -p`."""
    program, *arguments = recover.repair[:-1]  # without the device
    return " ".join([PurePath(program).name, *arguments])


def is_found_alone(name: str, findings: Sequence[Finding]) -> bool:
    """Whether mounting alone has a finding of the judge `name`, or of `mounts`: then there is no tree to judge."""
    alone = [finding for finding in findings if not finding.is_repaired]
    return any(finding.checker in (name, "mounts") for finding in alone)
