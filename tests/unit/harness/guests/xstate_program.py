"""Traces a child and sets its extended registers. test_xstate.py runs this with and without a library preloaded.

Prints what happened as JSON. `part` is how many bytes of the XSAVE area are set. Any host with AVX has more bytes.
"""

import ctypes
import errno
import json
import os
import signal
import sys

TRACEME, PEEKDATA, CONT, GETREGSET, SETREGSET = 0, 2, 7, 0x4204, 0x4205
NT_X86_XSTATE = 0x202
BUFFER_BYTES = 1 << 16
XMM, HEADER, YMM = slice(160, 416), slice(512, 520), slice(576, 832)
"""The low and the high halves of the vector registers, and the bits that say which registers are in use."""
IN_USE = 7
"""x87, SSE and AVX."""
WORD = ctypes.c_long(0x1122334455667788)


class Vector(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.restype = ctypes.c_long
ptrace.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def get(pid: int, length: int = BUFFER_BYTES) -> bytearray:
    """The first `length` bytes of the area, or all of them if there are fewer."""
    buffer = ctypes.create_string_buffer(length)
    vector = Vector(ctypes.addressof(buffer), length)
    assert ptrace(GETREGSET, pid, NT_X86_XSTATE, ctypes.byref(vector)) == 0, os.strerror(ctypes.get_errno())
    return bytearray(buffer.raw[: vector.length])


def put(pid: int, content: bytearray, length: int | None = None) -> str | None:
    """Set the first bytes of the area. Returns the name of the error, if there is one."""
    buffer = ctypes.create_string_buffer(bytes(content))
    vector = Vector(ctypes.addressof(buffer), len(content) if length is None else length)
    failed = ptrace(SETREGSET, pid, NT_X86_XSTATE, ctypes.byref(vector))
    return errno.errorcode[ctypes.get_errno()] if failed else None


def main(part: int) -> dict[str, object]:
    """Set the whole area, then its first `part` bytes to other values, and read it."""
    pid = os.fork()
    if pid == 0:
        ptrace(TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(pid, 0)
    try:
        whole = get(pid)
        whole[HEADER] = (int.from_bytes(whole[HEADER], "little") | IN_USE).to_bytes(8, "little")
        whole[XMM], whole[YMM] = b"\x11" * 256, b"\x22" * 256
        told = {"whole": put(pid, whole), "more": put(pid, whole, len(whole) + 64), "odd": put(pid, whole, part + 1)}
        before = get(pid)
        given = before[:part]
        given[XMM], given[HEADER] = b"\x33" * 256, bytes(8)
        given[HEADER] = (3).to_bytes(8, "little")
        told["part"] = put(pid, given)
        after = get(pid)
        same = slice(max(part, YMM.start), None)
        return told | {
            "bytes": len(whole),
            "set": after[XMM] == given[XMM],
            "kept": before[XMM] == after[XMM] and before == after,
            "beyond": after[YMM] == before[YMM] and after[same] == before[same],
            "truncated": get(pid, part) == after[:part],
            "peeked": ptrace(PEEKDATA, pid, ctypes.addressof(WORD), None) == WORD.value,
            "no process": ptrace(CONT, 1 << 30, None, None) == -1 and ctypes.get_errno() == errno.ESRCH,
        }
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


print(json.dumps(main(int(sys.argv[1]))))
