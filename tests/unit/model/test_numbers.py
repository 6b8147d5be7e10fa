"""Counts for people."""

import json
import sys

import pytest

from postcrash.model.numbers import DIGITS_MAX, allow_large_numbers, counted, grouped


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


def test_counts_of_a_million_pieces_are_read_and_longer_numbers_are_not() -> None:
    before = sys.get_int_max_str_digits()
    try:
        allow_large_numbers()
        assert int(str(2**1_000_000)) == 2**1_000_000
        with pytest.raises(ValueError, match="limit"):
            json.loads("9" * (DIGITS_MAX + 1))
    finally:
        sys.set_int_max_str_digits(before)
