"""Recovery as distributions do it: a program repairs the disk, then it is mounted. Compared with mounting alone.

All that holds of a file system that is mounted alone must hold after a repair too. A state that breaks a judge after a
repair is therefore mounted alone once more, and the finding says what the judge thinks of that.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from postcrash.harness.errors import UsageError
from postcrash.reports.store.records import Finding
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
    """Whether to repair, for each way to recover that there is. UsageError where only a repair will do and none is."""
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
    """Whether mounting alone has a finding of the judge `name`, or, as no tree is there to judge, of `mounts`."""
    alone = [finding for finding in findings if not finding.is_repaired]
    return any(finding.checker in (name, "mounts") for finding in alone)
