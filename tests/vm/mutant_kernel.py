"""Kernels with a planted bug: Debian's user-mode Linux with the code of one function overwritten.

The kernel itself tells where its functions are (/proc/kallsyms). It is a program with fixed addresses, so this gives
the place of their code in the file.
"""

import hashlib
import re
import struct
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.kernels.kernel import Kernel, find_kernel
from postcrash.harness.guests.script_guest import run_script, script_root
from postcrash.targets import target_named

RETURN_SUCCESS = bytes.fromhex("31c0c3")
"""xor %eax,%eax; ret: the function does nothing and returns 0."""
NOT_SUPPORTED = bytes.fromhex("48c7c0a1ffffffc3")
"""mov $-EOPNOTSUPP,%rax; ret: the function does nothing and fails."""
LOOP_FOREVER = bytes.fromhex("ebfe")
"""jmp to itself."""

_LIST_FUNCTIONS = "grep -E ' [tT] (ext4|jbd2|btrfs|xfs|xlog|f2fs)_' /proc/kallsyms\n"
"""Only functions of file systems, because the guest's console cannot be read without limit."""
_LOADED = 1
"""Type of an ELF program header: a part of the file that is loaded."""


def mutant(folder: Path, function: str, code: bytes) -> Kernel:
    """User-mode Linux whose `function` starts with `code`, as a program in `folder`."""
    kernel = find_kernel()
    content = bytearray(kernel.path.read_bytes())
    start = _offset(content, address(function))
    content[start : start + len(code)] = code
    path = folder / f"linux-{hashlib.sha256(content).hexdigest()[:12]}"
    path.write_bytes(content)
    path.chmod(0o755)
    return replace(kernel, path=path)


@lru_cache
def _symbols() -> str:
    kernel, target = find_kernel(), target_named("ext4-current")
    ran = run_script(kernel, script_root(kernel, target, cache_folder()), target, _LIST_FUNCTIONS)
    assert ran.code == 0, ran.printed[-2000:]
    return ran.printed


def address(function: str) -> int:
    """The address of this function in the kernel."""
    found = re.findall(rf"^([0-9a-f]+) [tT] {re.escape(function)}\b", _symbols(), re.MULTILINE)
    assert len(found) == 1, f"{function} is there {len(found)} times"
    return int(found[0], 16)


def _offset(elf: bytes | bytearray, address: int) -> int:
    """The place in the file of a 64-bit program of the byte at `address`."""
    (headers,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for number in range(count):
        kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", elf, headers + number * size)
        if kind == _LOADED and virtual <= address < virtual + length:
            return int(offset + address - virtual)
    raise AssertionError(f"no part of the program is loaded at {address:#x}")
