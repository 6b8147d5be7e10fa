"""A fault to plant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """`old` in a source file of crashgen/core becomes `new`; the test program `noticed_by` must fail then."""

    why: str
    file: str
    old: str
    new: str
    noticed_by: str = "litmus"
