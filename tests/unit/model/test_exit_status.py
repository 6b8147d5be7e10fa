"""An exit status is about the file system, or says that the program did not look at it."""

import pytest

from postcrash.model import FsckResult
from postcrash.model.exit_status import shortened, why_not_looked, why_not_repaired


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 8, 12, 15, 17, 33, 125, 193, 255])
def test_a_program_that_ended_by_itself_has_looked(status: int) -> None:
    """255 is no signal: Linux has 64 of them."""
    assert why_not_looked(FsckResult(status, "output")) == why_not_repaired(FsckResult(status, "output")) == ""


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (-9, "was killed by signal 9: one | two"),
        (129, "was killed by signal 1: one | two"),
        (192, "was killed by signal 64: one | two"),
        (16, "did not run: status 16 (usage or syntax error): one | two"),
        (32, "did not run: status 32 (cancelled): one | two"),
        (126, "did not run: status 126 (the program cannot be executed): one | two"),
        (127, "did not run: status 127 (no such program): one | two"),
        (128, "did not run: status 128 (shared library error): one | two"),
    ],
)
def test_a_program_that_did_not_get_to_the_end_has_not(status: int, reason: str) -> None:
    result = FsckResult(status, "one\ntwo\n")
    assert why_not_looked(result) == why_not_repaired(result) == reason


@pytest.mark.parametrize(
    ("status", "output", "has_run"),
    [
        (2, "Usage: fsck.fat [OPTIONS] DEVICE", False),
        (2, "bad option\nusage: fsck.fat", False),
        (2, "block usage was corrected", True),
        (2, "sausage: fixed", True),
        (1, "Usage: fsck.fat", True),
    ],
)
def test_a_repair_that_shows_its_usage_has_not_run(status: int, output: str, has_run: bool) -> None:
    result = FsckResult(status, output)
    assert (why_not_repaired(result) == "") == has_run
    assert why_not_looked(result) == ""


def test_output_is_one_line_of_bounded_length() -> None:
    assert shortened("  one \n\n\ttwo\r\n \n") == "one | two"
    assert shortened(" \n\n") == ""
    assert shortened("x" * 300) == "x" * 300
    assert shortened("x" * 301) == "x" * 300 + "…"
    assert shortened(f"{'x' * 298}\ny") == "x" * 298 + " |…"
