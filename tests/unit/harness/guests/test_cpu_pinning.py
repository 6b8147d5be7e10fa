"""Machines are spread over the CPUs that they may use, also those of different processes."""

import os
import subprocess
import sys
import uuid
from collections import Counter

import pytest

from postcrash.harness.guests.cpu_pinning import PinnedCpu

HOLDER = """
import sys
from postcrash.harness.guests.cpu_pinning import PinnedCpu
seat = PinnedCpu(sys.argv[1])
print(seat.cpu, flush=True)
input()
"""


@pytest.fixture
def room() -> str:
    """Seats of this test's own, whatever else runs on this machine."""
    return f"test-{uuid.uuid4()}"


@pytest.fixture
def three_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPUs 2, 3 and 5 may be used."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 2, 3})


@pytest.mark.usefixtures("three_cpus")
def test_no_cpu_has_two_machines_while_another_has_none(room: str) -> None:
    seats = [PinnedCpu(room) for _ in range(8)]
    assert [seat.cpu for seat in seats] == [2, 3, 5, 2, 3, 5, 2, 3]


@pytest.mark.usefixtures("three_cpus")
def test_a_seat_that_was_left_is_the_first_to_be_taken(room: str) -> None:
    seats = [PinnedCpu(room) for _ in range(5)]
    seats[1].close()
    seats[1].close()
    again = [PinnedCpu(room) for _ in range(2)]
    assert Counter(seat.cpu for seat in (seats[0], *seats[2:], *again)) == {2: 2, 3: 2, 5: 2}


@pytest.mark.usefixtures("three_cpus")
def test_where_no_names_can_be_taken_any_cpu_will_do() -> None:
    assert PinnedCpu("too long" * 20).cpu in (2, 3, 5)


def test_a_seat_is_taken_for_other_processes_until_its_own_ends(room: str) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-c", HOLDER, room]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert int(other.stdout.readline()) == cpus[0]
        seats = [PinnedCpu(room) for _ in cpus]
        assert [seat.cpu for seat in seats] == [*cpus[1:], cpus[0]]
        other.kill()
    assert PinnedCpu(room).cpu == cpus[0]
