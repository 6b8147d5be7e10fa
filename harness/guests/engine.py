"""The engines that run a guest's kernel: user-mode Linux and QEMU, with or without KVM."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.binaries import find_binary

QEMU = "qemu-system-x86_64"
LIBRARY = "libpostcrash_xstate.so"
"""The library that is preloaded into user-mode Linux."""
KVM_DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_KVM_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Uml:
    """User-mode Linux: the kernel is a program of the host.

    `measures_raid6`: the kernel would spend a second of each start on measuring RAID 6 functions.
    """

    measures_raid6: bool = False
    memory_mib: int = 128
    boot_timeout_s: float = 60.0

    @property
    def label(self) -> str:
        """For reports."""
        return "UML"

    def to_wire(self) -> dict[str, Any]:
        """The engine as in the request `boot`. Raises InfrastructureError."""
        return {"name": "uml", "preload": str(uml_library()), "measures_raid6": self.measures_raid6}


@dataclass(frozen=True, slots=True)
class Qemu:
    """QEMU runs any kernel image. `virtual_time`: the guest's clock jumps ahead while it is idle; only without KVM.

    `blklogwrites`: an empty file. QEMU logs there what the guest writes to its last disk, which keeps nothing.
    """

    program: Path
    kvm: bool
    virtual_time: bool = False
    blklogwrites: Path | None = None
    memory_mib: int = 256
    boot_timeout_s: float = 180.0

    @property
    def label(self) -> str:
        """For reports: `QEMU/KVM`, `QEMU/TCG`, `QEMU/TCG (virtual time)`."""
        return ("QEMU/KVM" if self.kvm else "QEMU/TCG") + (" (virtual time)" if self.virtual_time else "")

    def to_wire(self) -> dict[str, Any]:
        """The engine as in the request `boot`."""
        log = str(self.blklogwrites) if self.blklogwrites else None
        how = {"kvm": self.kvm, "virtual_time": self.virtual_time, "blklogwrites": log}
        return {"name": "qemu", "program": str(self.program), **how}


Engine = Uml | Qemu


def uml_library() -> Path:
    """The library that is preloaded into user-mode Linux, so that it runs on every host (harness/guests/xstate).

    Raises InfrastructureError.
    """
    return find_binary(LIBRARY)


def find_qemu(kernel: Path, cache: Path) -> Qemu:
    """QEMU, with KVM if `kernel` boots with KVM. Raises InfrastructureError."""
    program = qemu_program()
    return Qemu(program, why_no_kvm(program, kernel, cache) is None)


def qemu_program() -> Path:
    """The path of QEMU. Raises InfrastructureError, which says what to install."""
    found = shutil.which(QEMU)
    if found is None:
        raise InfrastructureError(f"{QEMU} is not installed: run  apt-get install qemu-system-x86")
    return Path(found)


def why_no_kvm(qemu: Path, kernel: Path, cache: Path) -> str | None:
    """Why KVM cannot run guests here; None if it can. It is tried once between two starts of this machine.

    A guest may hang although the device is there. So `kernel` is booted without a root: it must panic.
    """
    if not KVM_DEVICE.exists():
        return f"there is no {KVM_DEVICE}"
    answer = cache / "kvm" / BOOT_ID.read_text().strip()
    try:
        if not answer.is_file():
            answer.parent.mkdir(parents=True, exist_ok=True)
            answer.write_text(_try_kvm(qemu, kernel) or "")
        return answer.read_text() or None
    except OSError as error:
        raise InfrastructureError(f"{answer}: {error.strerror}") from error


def _try_kvm(qemu: Path, kernel: Path) -> str | None:
    machine = ["-accel", "kvm", "-cpu", "host", "-m", "256M", "-nodefaults", "-no-reboot", "-display", "none"]
    boot = ["-serial", "stdio", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"]
    try:
        tried = subprocess.run(
            [qemu, *machine, *boot],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_KVM_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a guest gets nowhere in {_KVM_TIMEOUT_S} s"
    except OSError as error:
        return str(error)
    if tried.returncode != 0:
        errors = tried.stderr.strip().splitlines()
        return errors[0] if errors else f"{QEMU} ended with status {tried.returncode}"
    return None if "Kernel panic" in tried.stdout else "a guest ends before its kernel is up"
