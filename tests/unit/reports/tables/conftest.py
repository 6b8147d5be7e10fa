"""Cells of a small table."""

from collections.abc import Callable

import pytest

from postcrash.model import Verdict
from postcrash.store.records import Cell


@pytest.fixture
def cells(make_cell: Callable[..., Cell]) -> list[Cell]:
    """Each verdict, and a cell that was not put to the test."""
    return [
        make_cell("xfs", "mounts"),
        make_cell("xfs", "P2-null", Verdict.UNDECIDED, reason="4,096 recoveries were not enough"),
        make_cell("btrfs", "P1", Verdict.VIOLATED, witness="f-0000000000000001", reason="b is there, a is not"),
        make_cell("btrfs", "P2", Verdict.VIOLATED, witness="f-0000000000000002", reason="a is | long"),
        make_cell("btrfs", "mounts", relevant=0),
    ]
