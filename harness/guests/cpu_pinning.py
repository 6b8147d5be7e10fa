"""A CPU for each machine. Machines share the CPUs evenly, also those of other postcrash processes.

A guest and its crash disk are pinned to one CPU, because they take turns (docs/engines.md). So two commands that run at
the same time must not choose the same CPU.
"""

import errno
import itertools
import os
import random
import socket
from collections.abc import Iterator

_ROOM = "postcrash-seat"


class Seat:
    """A CPU that this process may use. It is taken until `close`, or until the process ends.

    There are as many rows of seats as are needed, each with one seat on every CPU. The first free seat is taken, so
    that no CPU has two machines while another one has none. A seat is a name in the abstract namespace of Unix sockets.
    The kernel keeps it, so that nothing stays behind when a process is killed. `room` begins these names.
    """

    def __init__(self, room: str = _ROOM) -> None:
        self._taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.cpu = self._take(room)

    def _take(self, room: str) -> int:
        cpus = sorted(os.sched_getaffinity(0))
        for row, cpu in _seats(cpus):
            try:
                self._taken.bind(f"\0{room}-{row}-{cpu}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    return random.choice(cpus)
            else:
                return cpu
        raise AssertionError("there is no last row")

    def close(self) -> None:
        """Let others take the seat."""
        self._taken.close()


def _seats(cpus: list[int]) -> Iterator[tuple[int, int]]:
    """Every seat, row by row."""
    return ((row, cpu) for row in itertools.count() for cpu in cpus)
