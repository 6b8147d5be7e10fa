"""Threads that write and flush at random, served as block/blk-flush.c does it, and logged as by dm-log-writes."""

import random

from .conftest import Event


class FlushingThreads:
    """A random run.

    below, above  what the crash disk and dm-log-writes see
    written       for each write, when the disk has completed it: a position in `below`
    flushes       for each flush that was asked for, when the disk saw its flush begin and end
    fua_ends      for each FUA write, when its flush ended
    """

    def __init__(self, seed: int, requests: int = 14) -> None:
        self._random = random.Random(seed)
        self.below: list[Event] = [("durable",)]
        self.above: list[Event] = [("durable",)]
        self.written: dict[int, int] = {}
        self.flushes: list[tuple[int, int]] = []
        self.fua_ends: dict[int, int] = {}
        self._waiting: list[int] = []
        self._served: list[int] = []
        self._begin = 0
        self._unflushed: list[int] = []
        """Plain writes that no flush covers which was asked for, and for each of these those that it covers."""
        self._covered: dict[int, list[int]] = {}
        for number in range(requests):
            self._ask(number, self._random.choice(["write", "FUA", "flush"]))
            for _ in range(self._random.randrange(4)):
                self._go_on()
        while self._waiting or self._served:
            self._go_on()
        self._log_plain(self._unflushed)

    def stable(self) -> dict[int, float]:
        """When each write was stable."""
        told: dict[int, float] = {}
        for number, written in self.written.items():
            ends = [end for begin, end in self.flushes if begin > written]
            ends += [self.fua_ends[number]] if number in self.fua_ends else []
            told[self.below[written - 1][2]] = min(ends, default=float("inf"))
        return told

    def _ask(self, number: int, kind: str) -> None:
        if kind == "flush":
            self._covered[number], self._unflushed = self._unflushed, []
        else:
            self.below += [(*_write(number), False, False), ("complete", number)]
            self.written[number] = len(self.below) - 1
        if kind == "write":
            self._unflushed.append(number)
        else:
            self._waiting.append(number)

    def _log_plain(self, numbers: list[int]) -> None:
        for number in numbers:
            self.above += [(*_write(number), False, False), ("complete", number)]

    def _go_on(self) -> None:
        """The flush that is under way ends, or the next one begins for all that wait."""
        if self._served:
            self.below.append(("complete", 1000 + self._begin))
            end = len(self.below) - 1
            for number in self._served:
                if number in self.written:
                    self.fua_ends[number] = end
                    self.above += [(*_write(number), True, False), ("complete", number)]
                else:
                    self.flushes.append((self._begin, end))
                    self._log_plain(self._covered[number])
                    self.above += [("flush", number), ("complete", number)]
            self._served = []
        elif self._waiting:
            self._begin, self._served, self._waiting = len(self.below), self._waiting, []
            self.below.append(("flush", 1000 + self._begin))


def _write(number: int) -> Event:
    return ("write", number, 4 * number, bytes([number]) * 2048)
