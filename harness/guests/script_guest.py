"""A guest that runs one shell script: a kernel, a root with the programs that scripts need, two disks to overwrite.

There is no crash disk and no agent. A script can use only the kernel's own device mapper to show a finding. The guest
sees the disks and the script as block devices. Its console shows what the script prints.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.engine import Qemu, uml_library
from postcrash.harness.guests.guest_root import cached_root, module_files, packed
from postcrash.harness.guests.kernels.bzimage import unpacked
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.program_files import Content, with_libraries
from postcrash.model.text import visible
from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.dm_log_writes import LOG_MIB
from postcrash.targets import TARGETS, Target, program_path

PROGRAMS = (
    *("bash", "cat", "chmod", "cmp", "dd", "grep", "head", "ln", "ls", "mkdir", "mknod", "mv", "od", "readlink"),
    *("rm", "rmdir", "sleep", "stat", "sync", "touch", "tr", "truncate", "unlink", "perl", "getfattr", "setfattr"),
    *("mount", "umount", "blockdev", "dmsetup", "insmod", "xfs_io"),
)
MEMORY_MIB = 512
TIMEOUT_S = 120.0
"""For a kernel that runs at the machine's speed. An emulated CPU gets four times as long."""
_CONSOLE_BYTES_MAX = 1 << 20
_PATH = program_path()
_CONFIGURATION = Path("/etc/mke2fs.conf")
_BEGIN, _END = "postcrash: script begins", "postcrash: script ends with"
_ENDED = re.compile(rf"{_BEGIN}\r?\n(.*){_END} (\d+)", re.DOTALL)
_INIT = f"""#!/usr/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DM_DISABLE_UDEV=1
mount -t devtmpfs none /dev 2>/dev/null
exec <>/dev/console >&0 2>&0
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /tmp
for need in boot flakey log-writes "$fstype"; do  # an option that the kernel does not know becomes a variable
    [ -e "/modules/$need" ] || continue
    while read -r module; do insmod "$module" 2>/dev/null; done <"/modules/$need"
done
disks=(/dev/ubd[a-c] /dev/vd[a-c])
disks=($(ls "${{disks[@]}}" 2>/dev/null))
tr -d '\\0' <"${{disks[2]}}" >/tmp/reproduce.sh
echo "{_BEGIN}"
DISK="${{disks[0]}}" LOG="${{disks[1]}}" bash /tmp/reproduce.sh </dev/null
echo "{_END} $?"
sync
perl -e 'syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc)'  # reboot(2): RB_POWER_OFF
"""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How a script ended: its exit code and its output. No code: it did not end in time, or the kernel crashed."""

    code: int | None
    printed: str


def run_script(kernel: Kernel, root: Path, target: Target, text: str, sleeps_s: int = 0) -> ScriptResult:
    """Run a script in a fresh guest with the `root` of `script_root`, a disk of the target's size and a disk for a log.

    The script may take `sleeps_s` more seconds than others. Raises InfrastructureError if no guest can be started here.
    """
    with scratch() as work:
        try:
            for name, mib in (("disk", target.size_mib), ("log", LOG_MIB)):
                with (work / name).open("wb") as disk:
                    disk.truncate(mib << 20)
            content = text.encode()
            (work / "script").write_bytes(content + bytes(-len(content) % SECTOR_BYTES))
        except OSError as error:
            raise InfrastructureError(f"disks for a script in {work}: {error.strerror}") from error
        disks = [work / name for name in ("disk", "log", "script")]
        if isinstance(kernel.engine, Qemu):
            return _run(
                _qemu(kernel, kernel.engine, packed(root), target, disks),
                sleeps_s + TIMEOUT_S * (1 if kernel.engine.kvm else 4),
                environment={},
            )
        others = os.environ.get("LD_PRELOAD")
        preload = {"LD_PRELOAD": ":".join([str(uml_library()), *filter(None, [others])])}
        return _run(_uml(kernel, root, target, disks, work), sleeps_s + TIMEOUT_S, preload)


def script_root(kernel: Kernel, target: Target, cache: Path) -> Path:
    """The root folder for `kernel`, with all programs that are installed. It is made in `cache` if it is not there."""
    targets = (*TARGETS, target)
    makers = {command[0] for each in targets for command in (each.mkfs, *each.commands)}
    found = [shutil.which(program, path=_PATH) for program in sorted({*PROGRAMS, *makers})]
    files: dict[Path, Content] = {Path("init"): _INIT.encode(), **module_files(kernel, targets)}
    if _CONFIGURATION.exists():
        files[_CONFIGURATION.relative_to("/")] = _CONFIGURATION
    for program in filter(None, found):
        files |= with_libraries(program)
    return cached_root(files, cache)


def _uml(kernel: Kernel, root: Path, target: Target, disks: list[Path], work: Path) -> list[str]:
    common = "root=/dev/root rootfstype=hostfs ro init=/init panic=-1 loglevel=4 con=null con0=null,fd:1 ssl=null"
    options = [f"mem={MEMORY_MIB}M", f"rootflags={root}", f"fstype={target.fstype}", f"uml_dir={work}/"]
    drives = [f"ubd{number}={disk}" for number, disk in enumerate(disks)]
    return [str(kernel.path), *common.split(), *options, *drives]


def _qemu(kernel: Kernel, engine: Qemu, root: Path, target: Target, disks: list[Path]) -> list[str]:
    cpu = ("kvm", "host") if engine.kvm else ("tcg", "max")
    drives = [
        word
        for disk in disks
        for word in (
            *("-drive", f"id={disk.name},if=none,format=raw,file={str(disk).replace(',', ',,')}"),
            *("-device", f"virtio-blk-pci,drive={disk.name}"),
        )
    ]
    return [
        *(str(engine.program), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "pc"),
        *("-smp", "1", "-accel", cpu[0], "-cpu", cpu[1], "-m", f"{MEMORY_MIB}M", "-serial", "stdio", *drives),
        *("-kernel", str(unpacked(kernel.path, cache_folder())), "-initrd", str(root)),
        *("-append", f"console=ttyS0 fstype={target.fstype} panic=-1 loglevel=4 mitigations=off audit=0"),
    ]


def _run(command: list[str], timeout_s: float, environment: dict[str, str]) -> ScriptResult:
    """Run a guest on one CPU to its end, or kill it with its whole process group."""
    with tempfile.TemporaryFile() as console:
        try:
            process = subprocess.Popen(
                ["taskset", "--cpu-list", str(random.choice(sorted(os.sched_getaffinity(0)))), *command],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": "/dev/shm"} | environment,
                process_group=0,
            )
        except OSError as error:
            raise InfrastructureError(f"{command[0]}: {error.strerror}") from error
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        console.seek(0)
        text = console.read(_CONSOLE_BYTES_MAX).decode(errors="backslashreplace")
    ended = _ENDED.search(text)
    if ended is None:
        return ScriptResult(None, visible(text.replace("\r", "")))
    return ScriptResult(int(ended[2]), visible(ended[1].replace("\r", "")))
