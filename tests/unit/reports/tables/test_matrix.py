"""The table for several kernels: what differs, what is undecided, and what it rests on."""

import datetime
import io
from collections.abc import Callable

import pytest
from rich.console import Console

from postcrash.model import Verdict
from postcrash.properties.promises import Statements
from postcrash.reports.page.matrix_page import report_of_matrix
from postcrash.reports.page.page import render
from postcrash.reports.tables.matrix import Matrix
from postcrash.reports.tables.table import matrix_markdown, print_matrix
from postcrash.store.records import Cell
from postcrash.store.table_rows import Column

MakeCell = Callable[..., Cell]
HOLDS, UNDECIDED, VIOLATED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.VIOLATED
CHANGE = "xfs P2: ✓ 6.1; ✗ 6.12 f-0000000000000001: a is <long>"


@pytest.fixture
def matrix(make_cell: MakeCell) -> Matrix:
    old, new, image = "UML 6.1.176", "UML 6.12.101", "QEMU/TCG 6.1.0"
    there = [
        make_cell("xfs", "P1", kernel=old),
        make_cell("xfs", "P2", kernel=old),
        make_cell("jfs", "P1", kernel=image),
        make_cell("jfs", "P2", UNDECIDED, kernel=image, reason="too many"),
    ]
    then = [
        make_cell("xfs", "P1", UNDECIDED, kernel=new, reason="too many"),
        make_cell("xfs", "P2", VIOLATED, kernel=new, witness="f-0000000000000001", reason="a is <long>"),
        *(make_cell("jfs", p, UNDECIDED, kernel=new, workloads=0, reason=f"{new} has no jfs") for p in ("P1", "P2")),
    ]
    columns = (Column("6.1", tuple(there), 70, 10**40, 1234), Column("6.12", tuple(then), 35, 17, 5))
    return Matrix(columns, "cache", "postcrash characterize --kernel 6.1,6.12", datetime.date(2026, 11, 21))


def test_cells_have_a_verdict_for_each_kernel(matrix: Matrix) -> None:
    marks = {target: [place.mark for place in places] for target, places in matrix.rows}
    assert marks == {"xfs": ["✓?", "✓✗*"], "jfs": ["✓–", "?–"]}


def test_what_nobody_promised_is_marked_once_for_all_kernels(make_cell: MakeCell) -> None:
    said = Statements(None, None)
    old, new = make_cell("xfs", "P4", statements=said), make_cell("xfs", "P4", VIOLATED, statements=said)
    columns = (Column("6.1", (old,), 1, 1, 1), Column("6.12", (new,), 1, 1, 1))
    matrix = Matrix(columns, "cache", "", datetime.date.today())
    assert [place.mark for _, places in matrix.rows for place in places] == ["✓✗°*"]


def test_only_holds_and_violated_contradict_each_other(matrix: Matrix) -> None:
    assert [place.change for place in matrix.changes] == [CHANGE]


def test_what_is_open_comes_with_kernels_and_reason(matrix: Matrix) -> None:
    assert matrix.open == (
        "? jfs P2 on 6.1: too many",
        "? xfs P1 on 6.12: too many",
        "– jfs P1, P2 on 6.12: UML 6.12.101 has no jfs",
    )


def test_totals_name_engines_and_versions(matrix: Matrix) -> None:
    assert [column.total for column in matrix.columns] == [
        "6.1 (UML 6.1.176; QEMU/TCG 6.1.0 for jfs): 70 workloads, "
        "about 10^40 crash states covered with 1,234 recoveries",
        "6.12 (UML 6.12.101): 35 workloads, 17 crash states covered with 5 recoveries",
    ]


def test_every_form_has_it_all(matrix: Matrix) -> None:
    out = io.StringIO()
    print_matrix(matrix, Console(file=out, width=120))
    for text in (out.getvalue(), render(report_of_matrix(matrix, []), [])):
        for line in (*matrix.open[:2], *(column.total for column in matrix.columns)):
            assert line.partition(":")[2].strip() in text
        assert "f-0000000000000001" in text
    markdown = matrix_markdown(matrix)
    assert "| xfs | ✓? | ✓✗\\* |" in markdown
    assert "| xfs | P2 | a is \\<long\\> | 6.12 f-0000000000000001 |" in markdown
    assert matrix.command in markdown
    assert CHANGE.replace("<", "\\<").replace(">", "\\>") in markdown
    plain = matrix.to_json()
    assert [kernel["states"] for kernel in plain["kernels"]] == [str(10**40), "17"]
    assert plain["kernels"][0]["served"] == {"UML 6.1.176": ("xfs",), "QEMU/TCG 6.1.0": ("jfs",)}
    assert plain["changes"] == [
        {
            "target": "xfs",
            "property": "P2",
            "verdicts": {"6.1": "holds", "6.12": "violated"},
            "witnesses": {"6.12": "f-0000000000000001"},
        }
    ]


def test_twenty_targets_and_four_kernels_are_readable_at_120_columns(make_cell: MakeCell) -> None:
    properties = ("P1", "P2", "P2-null", "P3", "P4", "P5")
    cells = tuple(
        make_cell(f"a-target-with-a-name-{i}", prop, VIOLATED if i else HOLDS) for i in range(30) for prop in properties
    )
    columns = tuple(Column(name, cells, 1, 1, 1) for name in ("5.10", "6.1", "6.12", "7.2"))
    out = io.StringIO()
    print_matrix(Matrix(columns, "cache", "", datetime.date.today()), Console(file=out, width=120))
    assert sum(line.count("✗✗✗✗") == len(properties) for line in out.getvalue().splitlines()) == 29
