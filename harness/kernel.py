"""The guest kernel: Debian's user-mode Linux, or the one that POSTCRASH_UML names."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from postcrash.harness.errors import InfrastructureError

MODULES_FOLDER = Path("/usr/lib/uml/modules")
_MODULE = "kernel/drivers/block/virtio_blk.ko"
_VERSION_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that runs as a process. `virtio_blk` is the module of its block driver."""

    path: Path
    version: str
    virtio_blk: Path

    @property
    def label(self) -> str:
        """For reports: `UML 6.1.176`."""
        return f"UML {self.version}"


def find_kernel() -> Kernel:
    """The kernel of this machine. Raises InfrastructureError, which says what to install."""
    name = os.environ.get("POSTCRASH_UML", "linux.uml")
    found = shutil.which(name)
    if found is None:
        raise InfrastructureError(f"{name} is not installed: run  apt-get install user-mode-linux")
    try:
        asked = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InfrastructureError(f"{found} --version does not answer: {error}") from error
    version = asked.stdout.strip()
    module = Path(os.environ.get("POSTCRASH_UML_MODULES", MODULES_FOLDER)) / version / _MODULE
    if not module.is_file():
        raise InfrastructureError(f"{found} is version {version!r}, but there is no {module}")
    return Kernel(Path(found), version, module)
