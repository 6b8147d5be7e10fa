"""A machine that is used for one thing after another, and replaced if its crash disk ends."""

import time
from typing import Any

import pytest

from postcrash.harness.errors import CrashDiskEndedError
from postcrash.harness.guests import lazy_machine as module
from postcrash.harness.guests.lazy_machine import Spare


class Machine:
    """Counts how many there have been."""

    made = 0

    def __init__(self, settings: object) -> None:
        Machine.made += 1
        self.number = Machine.made

    def boot(self) -> None:
        """It is there at once."""

    def close(self) -> None:
        """Nothing is left."""


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine.made = 0
    monkeypatch.setattr(module, "Machine", Machine)


def step(spare: Any, ends: int) -> Any:
    """A step whose first `ends` machines end."""

    def run() -> int:
        number: int = spare().number
        if number <= ends:
            raise CrashDiskEndedError("the crash disk process has ended")
        return number

    return run


def test_one_machine_serves_all_steps() -> None:
    with Spare(None) as spare:  # type: ignore[arg-type]
        assert [spare.twice(step(spare, 0)) for _ in range(3)] == [1, 1, 1]


def test_a_step_is_done_once_more_with_another_machine() -> None:
    with Spare(None) as spare:  # type: ignore[arg-type]
        assert spare.twice(step(spare, 1)) == 2
        assert spare.twice(step(spare, 1)) == 2


def test_a_second_end_is_an_error_and_the_next_step_has_a_new_machine() -> None:
    with Spare(None) as spare:  # type: ignore[arg-type]
        with pytest.raises(CrashDiskEndedError, match="process has ended"):
            spare.twice(step(spare, 2))
        assert spare.twice(step(spare, 2)) == 3


def test_nothing_is_done_again_when_the_time_is_over() -> None:
    with Spare(None, until=time.monotonic() - 1) as spare:  # type: ignore[arg-type]
        with pytest.raises(CrashDiskEndedError, match="the time of this machine is over"):
            spare.twice(step(spare, 0))
        assert Machine.made == 0
