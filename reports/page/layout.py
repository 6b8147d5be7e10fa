"""How a heat map stands on the page: rows down and places across, or targets down if there are many more places."""

from collections.abc import Iterator
from dataclasses import dataclass

from postcrash.reports.page.report import HeatMap, Square, TableColumn, TableRow

ACROSS_MAX = 20
"""So many places stand beside each other however few rows there are."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above a column, above several, or before a line. The filters look at target, kernel and judges.

    None of one of these means that the cells differ in it. `span` is the number of columns.
    """

    text: str
    detail: str = ""
    target: str | None = None
    kernel: str | None = None
    judges: tuple[str, ...] | None = None
    span: int = 1


@dataclass(frozen=True, slots=True)
class NumberedSquare:
    """A square with its name and the number of its line in the table of what each answer rests on."""

    square: Square
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the page: a heading and a cell in each column. None if the question was not asked."""

    heading: Heading
    cells: tuple[NumberedSquare | None, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The heat map as a table. `groups` stand above `columns`; there may be none."""

    lines_are: str
    groups: tuple[Heading, ...]
    columns: tuple[Heading, ...]
    lines: tuple[Line, ...]


def lay_out(heat_map: HeatMap) -> Layout:
    """Places across, or targets down if there are more than `ACROSS_MAX` places and more than twice as many as rows."""
    places = len(heat_map.columns)
    is_wide = places > ACROSS_MAX and places > 2 * len(heat_map.rows)
    return _targets_down(heat_map) if is_wide else _places_across(heat_map)


def _places_across(heat_map: HeatMap) -> Layout:
    cells = dict(_cells(heat_map))
    several = heat_map.has_kernels
    return Layout(
        lines_are=heat_map.rows_are,
        groups=(),
        columns=tuple(
            Heading(at.target, at.kernel if several else "", at.target, at.kernel) for at in heat_map.columns
        ),
        lines=tuple(
            Line(Heading(row.name, row.title, judges=row.judges), tuple(cells[row.name, at] for at in heat_map.columns))
            for row in heat_map.rows
        ),
    )


def _targets_down(heat_map: HeatMap) -> Layout:
    cells = dict(_cells(heat_map))
    kernels = tuple(dict.fromkeys(at.kernel for at in heat_map.columns))
    asked = [(row, kernel) for row in heat_map.rows for kernel in kernels]
    several = heat_map.has_kernels
    return Layout(
        lines_are="target",
        groups=tuple(_of_row(row, span=len(kernels)) for row in heat_map.rows) if several else (),
        columns=tuple(
            Heading(kernel, kernel=kernel, judges=row.judges) if several else _of_row(row) for row, kernel in asked
        ),
        lines=tuple(
            Line(
                Heading(target, target=target, kernel=None if several else kernels[0]),
                tuple(cells.get((row.name, TableColumn(target, kernel))) for row, kernel in asked),
            )
            for target in dict.fromkeys(at.target for at in heat_map.columns)
        ),
    )


def _of_row(row: TableRow, span: int = 1) -> Heading:
    return Heading(row.name, row.title, judges=row.judges, span=span)


def _cells(heat_map: HeatMap) -> Iterator[tuple[tuple[str, TableColumn], NumberedSquare | None]]:
    """By the row's name and the place."""
    several = heat_map.has_kernels
    number = 0
    for row in heat_map.rows:
        for at, square in zip(heat_map.columns, row.squares, strict=True):
            if square is None:
                yield (row.name, at), None
                continue
            number += 1
            name = ", ".join([row.name, at.target, *([at.kernel] if several else [])])
            yield (row.name, at), NumberedSquare(square, name, number)
