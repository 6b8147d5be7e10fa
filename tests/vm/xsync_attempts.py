"""Tries every way out of a box that it is asked for, and says how each attempt ends: `python3 FILE ATTEMPT…`.

It runs inside a box, with the guest's own Python. Words of attempts: `connect PATH`, `fifo PATH`, `write PATH`,
`abstract NAME`, `family NUMBER`, `descriptor NUMBER`, `call NUMBER`, `device PATH`.
"""

import ctypes
import errno
import os
import socket
import stat
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)


def _connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(address)


def _fifo(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def _write(path: str) -> None:
    with open(path, "a") as file:
        file.write("out")


def _abstract(name: str) -> None:
    _connect(f"\0{name}")


def _family(number: str) -> None:
    socket.socket(int(number), socket.SOCK_DGRAM).close()


def _descriptor(number: str) -> None:
    os.write(int(number), b"out")


def _call(number: str) -> None:
    if _LIBC.syscall(int(number), 0, 0, 0, 0, 0, 0) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _device(path: str) -> None:
    os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(98, 0))


_ATTEMPTS = {
    "connect": _connect,
    "fifo": _fifo,
    "write": _write,
    "abstract": _abstract,
    "family": _family,
    "descriptor": _descriptor,
    "call": _call,
    "device": _device,
}


def _outcome(kind: str, argument: str) -> str:
    try:
        _ATTEMPTS[kind](argument)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


for kind, argument in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    print(kind, argument, _outcome(kind, argument), flush=True)
