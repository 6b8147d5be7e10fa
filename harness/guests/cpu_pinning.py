"""A CPU for each machine. Machines share the CPUs evenly, also those of other postcrash processes.

A guest and its crash disk are pinned to one CPU, because they take turns (docs/engines.md). So two commands that run at
the same time must not choose the same CPU.
"""

import errno
import itertools
import os
import random
import socket

_PREFIX = "postcrash-seat"


class PinnedCpu:
    """A CPU that this process may use. It is reserved until `close`, or until the process ends.

    Each CPU has a slot in every row, and the first free slot of all rows is reserved. So no CPU has two machines while
    another one has none. A slot is a name, which begins with `prefix`, in the abstract namespace of Unix sockets. The
    kernel keeps it, so that nothing stays behind when a process is killed.
    """

    def __init__(self, prefix: str = _PREFIX) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.cpu = self._reserve(prefix)

    def _reserve(self, prefix: str) -> int:
        cpus = sorted(os.sched_getaffinity(0))
        for row in itertools.count():
            for cpu in cpus:
                try:
                    self._socket.bind(f"\0{prefix}-{row}-{cpu}")
                except OSError as error:
                    if error.errno != errno.EADDRINUSE:
                        return random.choice(cpus)
                else:
                    return cpu
        raise AssertionError("there is no last row")

    def close(self) -> None:
        """Let others have the slot."""
        self._socket.close()
