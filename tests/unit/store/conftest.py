"""Cells, findings and results of gates, as the tests of reports have them."""

from ..reports.conftest import base, crash, make_cell
from ..reports.gate.conftest import green, hostile, make_failure, make_part, make_run, make_undecided, mixed

__all__ = (
    "base",
    "crash",
    "green",
    "hostile",
    "make_cell",
    "make_failure",
    "make_part",
    "make_run",
    "make_undecided",
    "mixed",
)
