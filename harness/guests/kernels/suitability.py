"""Which targets a kernel can run, found out without booting it."""

import re

from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.file_systems import has_file_system
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.targets import Target

SUPERVISOR_KERNELS_MIN = {"xsync": (5, 17)}
"""The oldest Linux that each supervisor runs on, as it says itself."""
ONLY_UML_RUNS_PROGRAMS = "only user-mode Linux, which sees this machine's files, runs programs"
"""Why guests with another engine run no programs of this machine."""


def why_unsuitable(kernel: Kernel, target: Target) -> str | None:
    """Why guests with `kernel` cannot run `target`. None if they can, or if it is not known. InfrastructureError."""
    if not has_file_system(kernel, target.fstype):
        return f"{kernel.label} has no {target.fstype} (target {target.name})"
    return _why_not_supervised(kernel, target) if target.supervisor else None


def _why_not_supervised(kernel: Kernel, target: Target) -> str | None:
    unable = f"{kernel.label} cannot run {target.supervisor} (target {target.name})"
    if not isinstance(kernel.engine, Uml):
        return f"{unable}: {ONLY_UML_RUNS_PROGRAMS}"
    major, minor = SUPERVISOR_KERNELS_MIN[target.supervisor]
    found = re.match(r"(\d+)\.(\d+)", kernel.version)
    if found and (int(found[1]), int(found[2])) < (major, minor):
        return f"{unable}: it needs Linux {major}.{minor} or later"
    return None
