"""A machine that is started when it is first asked for, and ended when its time is over."""

import threading
import time
from collections.abc import Callable
from typing import Self, TypeVar

from postcrash.harness.budget import is_over
from postcrash.harness.errors import CrashDiskEndedError
from postcrash.harness.guests.machine import Machine, MachineSettings

_Result = TypeVar("_Result")


class Spare:
    """One machine that is used for one thing after another. Use it in a `with` statement.

    `until` is a time of the monotonic clock. At this time the machine is ended, even while it works, and its user gets
    a CrashDiskEndedError.
    """

    def __init__(self, settings: MachineSettings, until: float | None = None) -> None:
        self._settings, self._until = settings, until
        self._machine: Machine | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return is_over(self._until)

    def __call__(self) -> Machine:
        """The machine. It is started now if it has not been started yet."""
        if self.is_over:
            raise CrashDiskEndedError("the time of this machine is over")
        if self._machine is None:
            machine = Machine(self._settings)
            self._machine = machine
            if self._until is not None:
                self._timer = threading.Timer(self._until - time.monotonic(), machine.close)
                self._timer.daemon = True
                self._timer.start()
            machine.boot()
        return self._machine

    def twice(self, step: Callable[[], _Result]) -> _Result:
        """Do something with the machine. If its crash disk ends, because it is killed, do it once more with another."""
        try:
            return step()
        except CrashDiskEndedError:
            self.close()
            if self.is_over:
                raise
        try:
            return step()
        except CrashDiskEndedError:
            self.close()
            raise

    def close(self) -> None:
        """End the machine; the next call starts another one."""
        if self._timer is not None:
            self._timer.cancel()
        if self._machine is not None:
            self._machine.close()
        self._machine = self._timer = None
