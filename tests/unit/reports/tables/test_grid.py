"""Cells become tables: which stands where, what its symbol and its marks say, and what is said below."""

from collections.abc import Callable

import pytest

from postcrash.model import Verdict
from postcrash.properties import PROPERTIES
from postcrash.properties.promises import Statements
from postcrash.reports.tables.grid import (
    NAMES_CHARACTERS_MAX,
    Grid,
    certificate_numbers,
    grids,
    group,
    mark,
    note,
    otherwise_published,
    published_notes,
    symbol,
    titles,
    totals,
)
from postcrash.store.records import Cell

MakeCell = Callable[..., Cell]
HOLDS, UNDECIDED, VIOLATED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.VIOLATED


@pytest.mark.parametrize(
    ("target", "prop", "verdict", "expected"),
    [
        ("btrfs", "P1", VIOLATED, None),
        ("btrfs", "P1", HOLDS, VIOLATED),
        ("btrfs", "P2", VIOLATED, HOLDS),
        ("btrfs", "P2", UNDECIDED, None),
        ("btrfs", "P2-null", VIOLATED, None),
        ("xfs", "P1", VIOLATED, None),
    ],
)
def test_a_verdict_is_compared_with_the_published_one(
    make_cell: MakeCell, target: str, prop: str, verdict: Verdict, expected: Verdict | None
) -> None:
    cell = make_cell(target, prop, verdict)
    assert otherwise_published(cell) is expected
    assert mark(cell) == verdict.symbol + ("†" if expected is not None else "")


def test_rows_and_columns(cells: list[Cell]) -> None:
    (grid,) = grids(cells)
    assert grid.targets == ("xfs", "btrfs")
    assert grid.properties == ("P1", "P2", "P2-null", "mounts")
    assert grid.cell("btrfs", "P1") == cells[2]
    assert grid.cell("xfs", "P1") is None
    assert grid.in_order == (cells[1], cells[0], cells[2], cells[3], cells[4])


def test_each_kernel_and_device_model_has_its_table(make_cell: MakeCell) -> None:
    cells = [make_cell(), make_cell(model="lying"), make_cell("btrfs"), make_cell(kernel="UML 6.12")]
    found = grids(cells)
    assert [(grid.kernel, grid.model, len(grid.cells)) for grid in found] == [
        ("UML 6.1.176", "cache", 2),
        ("UML 6.1.176", "lying", 1),
        ("UML 6.12", "cache", 1),
    ]


def test_notes(cells: list[Cell]) -> None:
    assert [note(cell) for cell in cells] == [
        "",
        "4,096 recoveries were not enough",
        "f-0000000000000001: b is there, a is not; broken: rule (fs(5))",
        "f-0000000000000002: a is | long; broken: rule (fs(5))",
        "its premise was never seen",
    ]


def test_certificates_are_exact(make_cell: MakeCell) -> None:
    assert certificate_numbers(make_cell()) == ("1,180,591,620,717,411,303,424", "14", "9", "12", "3")


def test_rows_and_columns_have_the_same_cells(cells: list[Cell]) -> None:
    (grid,) = grids(cells)
    across = {(target, cell.property): cell for target, row in grid.rows for cell in row if cell is not None}
    down = {(cell.target, prop): cell for prop, column in grid.columns for cell in column if cell is not None}
    assert across == down and list(across.values()) == list(grid.in_order)
    assert [len(row) for _, row in grid.rows] == [4, 4] and [len(column) for _, column in grid.columns] == [2] * 4
    assert grid.noted == (cells[1], cells[2], cells[3], cells[4])
    assert grid.title == "kernel UML 6.1.176, device model cache"
    assert grids([]) == ()


def test_of_several_cells_at_one_place_the_last_counts(make_cell: MakeCell) -> None:
    old, new = make_cell(verdict=UNDECIDED), make_cell(verdict=HOLDS)
    (grid,) = grids([old, new])
    assert grid.cell("ext4-current", "P1") == new
    assert grid.in_order == (new,)


def test_a_table_is_tall_where_names_do_not_fit_side_by_side(make_cell: MakeCell) -> None:
    for length, is_tall in ((NAMES_CHARACTERS_MAX - 2, False), (NAMES_CHARACTERS_MAX - 1, True)):
        cells = (make_cell(), make_cell("xfs", "x" * length))
        assert Grid("k", "cache", cells).is_tall is is_tall


def test_what_the_target_could_not_run_has_no_verdict(make_cell: MakeCell) -> None:
    for verdict in Verdict:
        assert symbol(make_cell(verdict=verdict, workloads=0)) == "–"
        assert symbol(make_cell(verdict=verdict, workloads=1)) == verdict.symbol


def test_a_premise_that_was_never_seen_is_said_of_what_holds_only(make_cell: MakeCell) -> None:
    unpromised = Statements(None, None)
    assert note(make_cell(verdict=UNDECIDED, relevant=0)) == ""
    assert note(make_cell(verdict=HOLDS, relevant=0, reason="why")) == "why: its premise was never seen"
    assert note(make_cell(verdict=VIOLATED, relevant=0, reason="why", statements=unpromised)) == "why"


def test_differences_from_the_published_table_are_told_in_order(make_cell: MakeCell) -> None:
    cells = (make_cell("btrfs", "P2", VIOLATED), make_cell("xfs", "P1"), make_cell("btrfs", "P1"))
    first, second = published_notes(Grid("k", "cache", cells))
    assert first.startswith("btrfs P1: published ✗ (Linux 3.2)") and second.startswith("btrfs P2: published ✓ (Linux")


def test_all_certificates_together(make_cell: MakeCell) -> None:
    one = Grid("k", "cache", (make_cell(states=1000),))
    assert totals(one).startswith("1 cell covers 1,000 crash states with 14 recoveries of 12 workloads; ")
    two = Grid("k", "cache", (make_cell(states=2**70), make_cell("xfs", states=1)))
    assert totals(two).startswith("2 cells cover 1,180,591,620,717,411,303,425 crash states with 28 recoveries of 24 w")


def test_each_property_has_a_title_and_a_group() -> None:
    names = [known.name for known in PROPERTIES]
    assert [title.split(" ")[0] for title in titles(names)] == names
    assert titles(["mounts", "P1", "p1"]) == ["P1 ordered directory operations"]
    assert all(map(group, names))
    assert (group("P1"), group("mounts"), group("")) == ("hotdep13", "", "")
