"""Identifies the build of a kernel. Builds can share a version, and a changed file keeps its build id."""

import hashlib
import re
from pathlib import Path
from typing import Protocol

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.kernels.bzimage import unpacked
from postcrash.harness.guests.kernels.config import known_config
from postcrash.harness.guests.kernels.elf_notes import build_id
from postcrash.harness.guests.kernels.kernel import image_version
from postcrash.store.kernel_build import KernelBuild

_COMMIT = re.compile(r"-g([0-9a-f]{7,40})(?![0-9a-z])")
"""What CONFIG_LOCALVERSION_AUTO adds to the version (scripts/setlocalversion)."""


class KernelFiles(Protocol):
    """A kernel, whether or not this machine can run it."""

    @property
    def path(self) -> Path:
        """Its file."""
        ...

    @property
    def modules(self) -> Path | None:
        """The folder of its modules, if it has any."""
        ...

    @property
    def version(self) -> str:
        """What it says of itself."""
        ...

    @property
    def name(self) -> str:
        """As the user calls it."""
        ...


def build_of(kernel: KernelFiles, cache: Path) -> KernelBuild:
    """The build of `kernel`. Raises InfrastructureError if a file cannot be read.

    The build id of a bzImage is that of the kernel within, if it can be unpacked here.
    """
    config = known_config(kernel.path, kernel.modules)
    linked = kernel.path if image_version(kernel.path) is None else unpacked(kernel.path, cache)
    commit = _COMMIT.search(kernel.version)
    try:
        return KernelBuild(
            content=content_digest(kernel.path),
            name=kernel.name.encode(errors="backslashreplace").decode(),
            build_id=build_id(linked),
            commit=commit[1] if commit else "",
            configuration=hashlib.sha256(config.encode()).hexdigest() if config is not None else "",
        )
    except OSError as error:
        raise InfrastructureError(f"{kernel.path}: {error.strerror or error}") from error
