"""Which targets a kernel can run, found out without booting it."""

import re
from collections.abc import Iterable

from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.config import known_config, sets
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
    if missing := missing_configuration(kernel, target.configuration):
        return f"{kernel.label} was built without {' and '.join(missing)} (target {target.name})"
    return _why_not_supervised(kernel, target) if target.supervisor else None


def missing_configuration(kernel: Kernel, options: Iterable[str]) -> list[str]:
    """The options, such as CONFIG_UNICODE, that the kernel was built without. None if its configuration is unknown."""
    wanted = list(options)
    config = known_config(kernel.path, kernel.modules) if wanted else None
    return [option for option in wanted if config is not None and not sets(config, option.removeprefix("CONFIG_"))]


def _why_not_supervised(kernel: Kernel, target: Target) -> str | None:
    unable = f"{kernel.label} cannot run {target.supervisor} (target {target.name})"
    if not isinstance(kernel.engine, Uml):
        return f"{unable}: {ONLY_UML_RUNS_PROGRAMS}"
    major, minor = SUPERVISOR_KERNELS_MIN[target.supervisor]
    found = re.match(r"(\d+)\.(\d+)", kernel.version)
    if found and (int(found[1]), int(found[2])) < (major, minor):
        return f"{unable}: it needs Linux {major}.{minor} or later"
    return None
