"""Arranges a heat map on the page: rows down and places across, or targets down if there are many more places."""

from collections.abc import Iterator
from dataclasses import dataclass

from postcrash.reports.page.report import HeatMap, Square, TableColumn, TableRow

ACROSS_MAX = 20
"""This many places are across, however few rows there are."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column, a group of columns, or a line. The filters use its target, kernel and judges.

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
    """A square with its name and the number of its line in the table of evidence."""

    square: Square
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the page: a heading and a cell in each column. Cells without an answer are None."""

    heading: Heading
    cells: tuple[NumberedSquare | None, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The heat map as a table. `groups` are the headings above `columns`; there may be none."""

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
    places = heat_map.columns
    return Layout(
        lines_are=heat_map.rows_are,
        groups=(),
        columns=tuple(
            Heading(place.target, place.kernel if heat_map.has_kernels else "", place.target, place.kernel)
            for place in places
        ),
        lines=tuple(
            Line(_row_heading(row), tuple(cells.get((row.name, place)) for place in places)) for row in heat_map.rows
        ),
    )


def _targets_down(heat_map: HeatMap) -> Layout:
    cells = dict(_cells(heat_map))
    kernels = tuple(dict.fromkeys(place.kernel for place in heat_map.columns))
    targets = tuple(dict.fromkeys(place.target for place in heat_map.columns))
    columns = [(row, kernel) for row in heat_map.rows for kernel in kernels]
    has_kernels = heat_map.has_kernels
    return Layout(
        lines_are="target",
        groups=tuple(_row_heading(row, span=len(kernels)) for row in heat_map.rows) if has_kernels else (),
        columns=tuple(
            Heading(kernel, kernel=kernel, judges=row.judges) if has_kernels else _row_heading(row)
            for row, kernel in columns
        ),
        lines=tuple(
            Line(
                Heading(target, target=target, kernel=None if has_kernels else kernels[0]),
                tuple(cells.get((row.name, TableColumn(target, kernel))) for row, kernel in columns),
            )
            for target in targets
        ),
    )


def _row_heading(row: TableRow, span: int = 1) -> Heading:
    return Heading(row.name, row.title, judges=row.judges, span=span)


def _cells(heat_map: HeatMap) -> Iterator[tuple[tuple[str, TableColumn], NumberedSquare]]:
    """The squares by the row's name and the place."""
    number = 0
    for row in heat_map.rows:
        for place, square in zip(heat_map.columns, row.squares, strict=True):
            if square is not None:
                number += 1
                kernel = [place.kernel] if heat_map.has_kernels else []
                yield (row.name, place), NumberedSquare(square, ", ".join([row.name, place.target, *kernel]), number)
