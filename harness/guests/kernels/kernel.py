"""The guest's kernel: user-mode Linux, which is a program, or an image that QEMU boots."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.guests.engine import Engine, Qemu, Uml, find_qemu
from postcrash.harness.guests.kernels.elf_notes import program_headers
from postcrash.harness.guests.kernels.modules import is_built_in

UML_MODULES = Path("/usr/lib/uml/modules")
INSTALLED = "installed"
"""How the kernel is called that has no name: the one that is installed on this machine."""
_VERSION_TIMEOUT_S = 10
# The x86 boot protocol, Documentation/x86/boot.rst: a magic number, and a pointer to the version's text.
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_VERSION_AT, _VERSION_BASE = 0x20E, 0x200
_HEADER_BYTES = 1 << 16
_INTERPRETER = 3
"""Type of the program header that names the dynamic loader, PT_INTERP (elf(5))."""
_VERSION = re.compile(r"\d+\.\d+\S*")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel and what runs it.

    modules  its folder of modules; None if everything is built in
    given    the user's own file, if `path` is a copy of it
    name     its name in the stock, or that of the user's own file; empty for the installed one
    """

    path: Path
    version: str
    modules: Path | None
    engine: Engine
    given: Path | None = None
    name: str = ""

    @property
    def known_as(self) -> Path:
        """The file as the user knows it."""
        return self.given or self.path

    @property
    def label(self) -> str:
        """For reports: `UML 6.1.176`, `QEMU/TCG 6.1.0-47-amd64`. Each build of a version has this label."""
        return f"{self.engine.label} {self.version}"


def labels_of(kernels: Mapping[Kernel, str]) -> dict[Kernel, str]:
    """A label for each kernel of one run, no two of which are alike. The values are the names that the user gave.

    It is the kernel's own label, such as `UML 6.1.192`, unless another kernel has this label too: then the name tells
    them apart, as in `UML 6.1.192 (patched)`. A version can stand for both, and then their own names do:
    `UML 6.1.192 (6.1: mine)`.
    """
    labels = {kernel: kernel.label for kernel in kernels}
    ways = ("{label} ({given})", "{label} ({given}: {own})")
    for way in ways:
        times = Counter(labels.values())
        named = {
            kernel: way.format(label=kernel.label, given=given, own=kernel.name or INSTALLED)
            for kernel, given in kernels.items()
        }
        labels = {kernel: named[kernel] if times[label] > 1 else label for kernel, label in labels.items()}
    return labels


def find_kernel() -> Kernel:
    """Debian's user-mode Linux, or the one that POSTCRASH_UML names. Raises InfrastructureError."""
    found = uml_program()
    if found is None:
        raise InfrastructureError(f"{_uml_name()} is not installed: run  apt-get install user-mode-linux")
    version = uml_version(found)
    modules = Path(os.environ.get("POSTCRASH_UML_MODULES", UML_MODULES)) / version
    if not modules.is_dir():
        raise InfrastructureError(f"{found} is version {version!r}, but there is no {modules}")
    return Kernel(found, version, modules, uml_with(modules))


def uml_program() -> Path | None:
    """The file of the kernel that `find_kernel` finds; None if there is none."""
    found = shutil.which(_uml_name())
    return None if found is None else Path(found)


def _uml_name() -> str:
    return os.environ.get("POSTCRASH_UML", "linux.uml")


def uml_with(modules: Path | None) -> Uml:
    """User-mode Linux with its folder of modules. Raises InfrastructureError if depmod's lists cannot be read."""
    return Uml(measures_raid6=modules is None or is_built_in(modules, "raid6_pq"))


def in_virtual_time(kernel: Kernel) -> Kernel:
    """The same kernel in virtual time, where sleeping costs nothing. Raises UsageError if it does not run in QEMU."""
    if not isinstance(kernel.engine, Qemu):
        raise UsageError(f"--virtual-time needs QEMU, and {kernel.label} runs without it")
    return replace(kernel, engine=replace(kernel.engine, kvm=False, virtual_time=True))


def kernel_at(path: Path, modules: Path | None, cache: Path) -> Kernel:
    """The kernel in the file `path`: an image for QEMU, or else a user-mode Linux.

    Raises UsageError when it is neither, InfrastructureError when this machine cannot run it.
    """
    version = image_version(path)
    if version is not None:
        return Kernel(path, version, modules, find_qemu(path, cache))
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} is neither a kernel image (bzImage) nor a user-mode Linux")
    return Kernel(path, uml_version(path), modules, uml_with(modules))


def image_version(path: Path) -> str | None:
    """The version of a bzImage (`6.1.0-47-amd64`). None if the file is no bzImage. UsageError if it cannot be read."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if header[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        return None
    start = _VERSION_BASE + int.from_bytes(header[_VERSION_AT : _VERSION_AT + 2], "little")
    words = header[start:].partition(b"\0")[0].decode("ascii", "replace").split()
    return words[0] if words else "unknown"


def uml_version(path: Path) -> str:
    """What `PATH --version` says. Raises InfrastructureError if it does not answer with a version."""
    try:
        ran = subprocess.run(
            [path.absolute(), "--version"],  # a name without a folder would be looked for in PATH
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InfrastructureError(f"{path} --version does not answer: {error}") from error
    version = ran.stdout.strip()
    if not _VERSION.fullmatch(version):
        raise InfrastructureError(f"{path} --version answers {version[:100]!r}, which is no kernel's version")
    return version


def is_static(program: Path) -> bool:
    """Whether a file is a 64-bit ELF program without a dynamic loader, so that nothing can be preloaded into it."""
    try:
        kinds = [kind for kind, _, _ in program_headers(program.read_bytes())]
    except OSError:
        return False
    return bool(kinds) and _INTERPRETER not in kinds
