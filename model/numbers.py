"""Formats counts."""

import math
import sys

DIGITS_MAX = 320_000
"""The most digits of a number that is read or written. n pieces in flight make 2 ** n crash states, so these are enough
for a million pieces. Python takes half a second to read so many, and time with the square of their number."""
_EXACT_DIGITS_MAX = 15


def allow_large_numbers() -> None:
    """Have Python read and write numbers of up to `DIGITS_MAX` digits; its own limit is 4,300. More: ValueError."""
    sys.set_int_max_str_digits(DIGITS_MAX)


def grouped(number: int) -> str:
    """The number with commas between groups of three digits."""
    return f"{number:,}"


def counted(number: int) -> str:
    """The number with commas, or as a power of ten if it is large."""
    return grouped(number) if number < 10**_EXACT_DIGITS_MAX else f"about 10^{math.log10(number):.0f}"


def plural(count: int, noun: str) -> str:
    """The count with its noun, such as `1 workload` or `1,200 workloads`."""
    return f"{grouped(count)} {noun}{'' if count == 1 else 's'}"
