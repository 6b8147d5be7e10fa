"""Counts for people."""

import pytest

from postcrash.reports.numbers import counted, grouped


@pytest.mark.parametrize(
    ("number", "exact", "short"),
    [
        (0, "0", "0"),
        (999, "999", "999"),
        (10**15 - 1, "999,999,999,999,999", "999,999,999,999,999"),
        (10**15, "1,000,000,000,000,000", "about 10^15"),
    ],
)
def test_numbers(number: int, exact: str, short: str) -> None:
    assert (grouped(number), counted(number)) == (exact, short)


def test_a_number_that_is_too_large_for_a_float() -> None:
    assert counted(2**100_000) == "about 10^30103"
