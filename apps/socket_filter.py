"""A program for seccomp under which no socket can be made, and so no network reached.

It knows x86-64, as user-mode Linux is, in which applications run, and its programs of 32 bits.
"""

import errno
import struct
from functools import cache

_STEP = struct.Struct("=HBBI")
"""`struct sock_filter`: code, steps to skip if the test is true, steps to skip if it is false, operand."""
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
"""Where `struct seccomp_data` has the number of the call, and what its program is made for."""
_X32 = 0x40000000
"""Numbers from here on are calls of another ABI, by which one would get round the others."""
_CALLS = {
    0xC000003E: {41: errno.EACCES, 53: errno.EACCES, 425: errno.ENOSYS},
    0x40000003: {359: errno.EACCES, 360: errno.EACCES, 425: errno.ENOSYS, 102: errno.EACCES},
}
"""For x86-64 and i386, the numbers of what makes sockets, and how it fails: socket, socketpair, io_uring_setup, and
socketcall, which is all calls of sockets in one. A pair is no way out by itself, but one of datagrams can be connected
to somebody else."""
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_FAIL = 0x00050000
"""Have the call fail with the error in the lower half."""


@cache
def without_sockets() -> bytes:
    """The program, as bubblewrap takes it. Calls that make a socket fail with EACCES, those of io_uring with ENOSYS."""
    steps = [(_LOAD, 0, 0, _ARCHITECTURE_AT)]
    for architecture, calls in _CALLS.items():
        answers = [(_LOAD, 0, 0, _NUMBER_AT), *_unless(_IF_AT_LEAST, _X32, errno.ENOSYS)]
        for number, error in calls.items():
            answers += _unless(_IF_EQUAL, number, error)
        answers.append((_RETURN, 0, 0, _ALLOW))
        steps += [(_IF_EQUAL, 0, len(answers), architecture), *answers]
    return b"".join(_STEP.pack(*step) for step in (*steps, (_RETURN, 0, 0, _KILL)))


def _unless(test: int, number: int, error: int) -> list[tuple[int, int, int, int]]:
    """Go on unless the number of the call passes the test. Then it fails with this error."""
    return [(test, 0, 1, number), (_RETURN, 0, 0, _FAIL | error)]
