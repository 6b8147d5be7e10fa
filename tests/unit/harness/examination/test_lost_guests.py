"""Of a guest that was lost, people read what it did then."""

import pytest

from postcrash.harness.errors import LostAtWork
from postcrash.harness.examination.lost_guests import activity_of, add_lost_guest, note
from postcrash.harness.examination.result import Examination
from postcrash.model import parse_workload
from postcrash.store.consoles import Casualty, console_file

WORKLOAD = parse_workload("creat a\nmkdir D\n---\nunlink a\nsync\n", "w")
RAN = parse_workload("mkdir D\n---\nrun put\nsays one\nends\n", "w")


def lost(started: int, returned: int, during: str = "run") -> LostAtWork:
    return LostAtWork(during, "the guest hangs", "console", "stacks", started=started, returned=returned)


@pytest.mark.parametrize(
    ("started", "returned", "told"),
    [
        (0, 0, "before the first operation, while the file system was mounted"),
        (1, 0, "in the set-up, in 'creat a'"),
        (1, 1, "after 'creat a'"),
        (2, 1, "in the set-up, in 'mkdir D'"),
        (2, 2, "while the set-up was made durable"),
        (3, 2, "in 'unlink a'"),
        (3, 3, "after 'unlink a'"),
        (4, 3, "in 'sync'"),
        (4, 4, "after the last operation, while the file system was unmounted"),
    ],
)
def test_a_guest_was_lost_in_an_operation_or_between_two(started: int, returned: int, told: str) -> None:
    assert activity_of(WORKLOAD, lost(started, returned)) == told


@pytest.mark.parametrize(
    ("started", "returned", "told"),
    [
        (1, 0, "in the set-up, in 'mkdir D'"),
        (2, 1, "in 'run put'"),
        (3, 2, "in 'run put', or after it"),
        (4, 4, "in 'run put', or after it"),
    ],
)
def test_nobody_knows_how_far_a_program_was(started: int, returned: int, told: str) -> None:
    assert activity_of(RAN, lost(started, returned)) == told


@pytest.mark.parametrize(("during", "what"), [("trust", "the base image"), ("recovery", "a crash state")])
def test_a_recovery_is_no_operation(during: str, what: str) -> None:
    assert activity_of(WORKLOAD, lost(1, 0, during)) == f"in the recovery of {what}"


def test_a_lost_guest_is_noted_and_its_console_is_to_be_kept() -> None:
    result, casualty = Examination(), Casualty("the guest hangs", "console", "stacks")
    add_lost_guest(result, WORKLOAD, lost(3, 2))
    assert result.lost_guests == [casualty]
    assert result.notes == [note("in 'unlink a'", casualty)]
    place = f"(console: {console_file(casualty)} in the store)"
    assert result.notes == [f"in 'unlink a': the guest hangs; the guest was replaced {place}"]
