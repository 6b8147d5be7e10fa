"""How counts are written."""

import math

_EXACT_DIGITS_MAX = 15


def grouped(number: int) -> str:
    """The number with commas between groups of three digits."""
    return f"{number:,}"


def counted(number: int) -> str:
    """The number with commas, or as a power of ten if it is large."""
    return grouped(number) if number < 10**_EXACT_DIGITS_MAX else f"about 10^{math.log10(number):.0f}"
