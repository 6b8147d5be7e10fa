"""The property table, for one kernel and for several, on the terminal, as Markdown and as JSON."""

import datetime
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from postcrash.model import Verdict
from postcrash.model.text import visible
from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.reports.tables.grid import (
    CERTIFICATE_HEADINGS,
    UNPROMISED_LEGEND,
    Grid,
    adversary_legend,
    certificate_numbers,
    grids,
    group,
    mark,
    marked,
    note,
    published_heading,
    published_notes,
    standing,
    standing_mark,
    symbol,
    titles,
    totals,
)
from postcrash.reports.tables.matrix import CHANGED_MARK, Matrix, MatrixPlace
from postcrash.reports.tables.matrix import LEGEND as MATRIX_LEGEND
from postcrash.store.json_codec import Json
from postcrash.store.records import Cell
from postcrash.store.table_rows import NOT_THERE

LEGEND = f"✓ holds, ✗ violated, ? undecided, {NOT_THERE} not there; {UNPROMISED_LEGEND}"
WIDTH_MAX = 1000
"""The width up to which a table may widen the terminal."""
NOT_ASKED = "·"
"""Stands in place of a missing cell."""

VERDICT_COLOURS = {Verdict.HOLDS: "green", Verdict.VIOLATED: "red", Verdict.UNDECIDED: "yellow"}


def page_head(title: str, date: datetime.date, command: str, made_on: str = "") -> list[str]:
    """The first lines of a page with a table in Markdown: its title, and the command that made it."""
    return [f"# {title}", "", f"Made on {date.isoformat()}{made_on} by", "", f"    {command}", ""]


def to_json(cells: Sequence[Cell]) -> Json:
    """All cells, as decoded JSON: `{"cells": [...]}`."""
    return {"cells": [cell.to_json() for cell in cells]}


def print_table(cells: Sequence[Cell], console: Console) -> None:
    """Print a table for each kernel and device model, and below it what the table rests on."""
    for grid in grids(cells):
        console.print(Text(visible(grid.title), style="italic"), soft_wrap=True)
        _print_whole(_rich_table(grid), console)
        for line in _footnotes(grid):
            console.print(Text(visible(line)), soft_wrap=True)
        console.print()


def _print_whole(table: Table, console: Console) -> None:
    """Print with no cell cut off, wider than the terminal if necessary."""
    width = console.width
    needed = Measurement.get(console, console.options.update(max_width=WIDTH_MAX), table).maximum
    console.width = max(width, needed)
    console.print(table, crop=False)
    console.width = width


def to_markdown(cells: Sequence[Cell]) -> str:
    """The tables and their footnotes in GitHub's Markdown."""
    return "\n".join(_markdown(grid) for grid in grids(cells))


def print_matrix(matrix: Matrix, console: Console) -> None:
    """Print the table for several kernels and below it where they differ, what is undecided, and what it rests on."""
    console.print(Text(visible(matrix.title), style="italic"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for prop in matrix.properties:
        table.add_column(Text(visible(prop)))
    for target, places in matrix.rows:
        table.add_row(Text(visible(target)), *map(_rich_place, places))
    console.print(table)
    for line in _matrix_footnotes(matrix):
        console.print(Text(visible(line)), soft_wrap=True)


def matrix_markdown(matrix: Matrix) -> str:
    """The table for several kernels in Markdown, with the command that made it."""
    header = ["", *matrix.properties]
    changes = [f"- {escaped(place.change)}" for place in matrix.changes]
    witnesses = [markdown_row(row) for row in matrix.witnesses]
    lines = [
        *page_head("Targets, properties, kernels", matrix.date, matrix.command),
        f"Each cell has a verdict for {escaped(matrix.title)}: {escaped(MATRIX_LEGEND)}.",
        f"{escaped('; '.join(titles(matrix.properties)))}.",
        "",
        *(f"- {escaped(column.total)}" for column in matrix.columns),
        "",
        *markdown_table(
            header, [markdown_row([target, *(place.mark for place in places)]) for target, places in matrix.rows]
        ),
        *(["## Where kernels differ", "", *changes, ""] if changes else []),
        *(
            ["## Undecided, or not there", "", *(f"- {escaped(line)}" for line in matrix.open), ""]
            if matrix.open
            else []
        ),
    ]
    if witnesses:
        header = ["target", "property", "what is wrong", "finding on each kernel"]
        lines += ["## Witnesses", "", *markdown_table(header, witnesses)]
    return "\n".join(lines)


def _rich_place(place: MatrixPlace) -> Text:
    text = Text()
    for _, cell in place.cells:
        text.append(symbol(cell), style=_style(cell) if cell.workloads else "dim")
    text.append(place.standing_mark, style="dim")
    return text.append(CHANGED_MARK if place.changed else "", style="bold")


def _style(cell: Cell) -> str:
    """The verdict's colour. A verdict on what nobody promised is not bold."""
    return f"{'not bold' if standing_mark(cell) else 'bold'} {VERDICT_COLOURS[cell.verdict]}"


def _matrix_footnotes(matrix: Matrix) -> list[str]:
    differing = [f"  {place.change}" for place in matrix.changes]
    return [
        f"{MATRIX_LEGEND}: {', '.join(titles(matrix.properties))}",
        *(column.total for column in matrix.columns),
        *(["where kernels differ:", *differing] if differing else []),
        *matrix.open,
    ]


def _rich_table(grid: Grid) -> Table:
    return _tall_table(grid) if grid.is_tall else _wide_table(grid)


def _tall_table(grid: Grid) -> Table:
    """Properties are in rows, with a rule between groups; targets are in columns, with names broken at hyphens."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for target in grid.targets:
        table.add_column(Text(visible(target).replace("-", "\n")), justify="center", no_wrap=True)
    groups = [group(prop) for prop in grid.properties]
    for (prop, cells), own, following in zip(grid.columns, groups, [*groups[1:], ""], strict=True):
        table.add_row(Text(visible(prop)), *map(_rich_cell, cells), end_section=own != following)
    return table


def _wide_table(grid: Grid) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for prop in grid.properties:
        table.add_column(Text(visible(prop)), justify="center")
    for target, cells in grid.rows:
        table.add_row(Text(visible(target)), *map(_rich_cell, cells))
    return table


def _rich_cell(cell: Cell | None) -> Text:
    return Text(mark(cell), style=_style(cell)) if cell else Text(NOT_ASKED, style="dim")


def _footnotes(grid: Grid) -> list[str]:
    """The lines below a table on the terminal."""
    lines = [LEGEND if grid.is_tall else f"{LEGEND}: {', '.join(titles(grid.properties))}"]
    lines += [*filter(None, [adversary_legend(grid.cells)]), totals(grid)]
    notes = published_notes(grid)
    lines += [f"{published_heading()}:", *(f"  {text}" for text in notes)] if notes else []
    return [*lines, *(f"{marked(cell)} {cell.target} {cell.property} {note(cell)}" for cell in grid.noted)]


def _markdown(grid: Grid) -> str:
    header = ["", *(grid.targets if grid.is_tall else grid.properties)]
    lines_of_cells = grid.columns if grid.is_tall else grid.rows
    rows = [[name, *(mark(cell) if cell else NOT_ASKED for cell in cells)] for name, cells in lines_of_cells]
    lines = [
        f"**{escaped(grid.title[:1].upper() + grid.title[1:])}**",
        "",
        markdown_row(header),
        "|" + " --- |" + " :-: |" * (len(header) - 1),
        *map(markdown_row, rows),
        "",
        f"{LEGEND}. {escaped('; '.join(titles(grid.properties)))}.",
        "",
        *(f"{line}." + "\n" for line in filter(None, [adversary_legend(grid.cells)])),
        f"{escaped(totals(grid))}.",
        "",
    ]
    return "\n".join([*lines, *_markdown_notes(grid)])


def _markdown_notes(grid: Grid) -> list[str]:
    lines = []
    if notes := published_notes(grid):
        lines += [f"{published_heading()}:", "", *(f"- {escaped(text)}" for text in notes), ""]
    header = ["target", "property", "verdict", "promise", *CERTIFICATE_HEADINGS, "witness, reason"]
    rows = [
        [cell.target, cell.property, symbol(cell), standing(cell), *certificate_numbers(cell), note(cell)]
        for cell in grid.in_order
    ]
    return [*lines, *markdown_table(header, map(markdown_row, rows))]
