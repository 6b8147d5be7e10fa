"""A program for seccomp under which no socket can be made, and so no network reached.

It is for x86-64, as user-mode Linux is, in which applications run.
"""

import errno
import struct

_STEP = struct.Struct("=HBBI")
"""`struct sock_filter`: code, steps to skip if the test is true, steps to skip if it is false, operand."""
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
"""Where `struct seccomp_data` has the number of the call, and what its program is made for."""
_X86_64 = 0xC000003E
_X32 = 0x40000000
"""Numbers from here on are calls of another ABI, by which one would get round the others."""
_SOCKET, _SOCKETPAIR, _IO_URING_SETUP = 41, 53, 425
"""What makes sockets. A pair is no way out by itself, but one of datagrams can be connected to somebody else."""
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_FAIL = 0x00050000
"""Have the call fail with the error in the lower half."""


def without_sockets() -> bytes:
    """The program, as bubblewrap takes it. Calls that make a socket fail with EACCES, those of io_uring with ENOSYS."""
    steps = (
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, 4, 0, _X32),
        (_IF_EQUAL, 3, 0, _IO_URING_SETUP),
        (_IF_EQUAL, 3, 0, _SOCKET),
        (_IF_EQUAL, 2, 0, _SOCKETPAIR),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
        (_RETURN, 0, 0, _FAIL | errno.EACCES),
    )
    return b"".join(_STEP.pack(*step) for step in steps)
