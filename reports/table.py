"""The property table on the terminal, as Markdown and as JSON."""

import re
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from postcrash.model import Verdict
from postcrash.reports.grid import (
    CERTIFICATE_HEADINGS,
    Grid,
    certificate_numbers,
    grids,
    group,
    mark,
    note,
    published_heading,
    published_notes,
    titles,
    totals,
)
from postcrash.reports.plain import Json
from postcrash.reports.records import Cell
from postcrash.reports.text import visible

LEGEND = "✓ holds, ✗ violated, ? undecided"
WIDTH_MAX = 1000
"""Columns of the terminal that a table may ask for."""
NOT_ASKED = "·"
"""In place of a cell that there is not."""

_STYLES = {Verdict.HOLDS: "bold green", Verdict.VIOLATED: "bold red", Verdict.UNDECIDED: "bold yellow"}
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]|<>~&$])")


def to_json(cells: Sequence[Cell]) -> Json:
    """All cells, as decoded JSON: `{"cells": [...]}`."""
    return {"cells": [cell.to_json() for cell in cells]}


def print_table(cells: Sequence[Cell], console: Console) -> None:
    """Print a table for each kernel and device model, and below it what it rests on."""
    for grid in grids(cells):
        console.print(Text(visible(grid.title), style="italic"), soft_wrap=True)
        _print_whole(_rich_table(grid), console)
        for line in _footnotes(grid):
            console.print(Text(visible(line)), soft_wrap=True)
        console.print()


def _print_whole(table: Table, console: Console) -> None:
    """Print with no cell cut off, wider than the terminal if it must be."""
    width = console.width
    needed = Measurement.get(console, console.options.update(max_width=WIDTH_MAX), table).maximum
    console.width = max(width, needed)
    console.print(table, crop=False)
    console.width = width


def to_markdown(cells: Sequence[Cell]) -> str:
    """The tables and their footnotes in Markdown, with tables as GitHub reads them."""
    return "\n".join(_markdown(grid) for grid in grids(cells))


def _rich_table(grid: Grid) -> Table:
    return _tall_table(grid) if grid.is_tall else _wide_table(grid)


def _tall_table(grid: Grid) -> Table:
    """Properties down, a rule between groups; targets across, their names broken at hyphens."""
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
    return Text(mark(cell), style=_STYLES[cell.verdict]) if cell else Text(NOT_ASKED, style="dim")


def _footnotes(grid: Grid) -> list[str]:
    """What stands below a table on the terminal."""
    lines = [LEGEND if grid.is_tall else f"{LEGEND}: {', '.join(titles(grid.properties))}", totals(grid)]
    notes = published_notes(grid)
    lines += [f"{published_heading()}:", *(f"  {text}" for text in notes)] if notes else []
    return [*lines, *(f"{cell.verdict.symbol} {cell.target} {cell.property} {note(cell)}" for cell in grid.noted)]


def _markdown(grid: Grid) -> str:
    header = ["", *(grid.targets if grid.is_tall else grid.properties)]
    lines_of_cells = grid.columns if grid.is_tall else grid.rows
    rows = [[name, *(mark(cell) if cell else NOT_ASKED for cell in cells)] for name, cells in lines_of_cells]
    lines = [
        f"**{_escaped(grid.title[:1].upper() + grid.title[1:])}**",
        "",
        _markdown_row(header),
        "|" + " --- |" + " :-: |" * (len(header) - 1),
        *map(_markdown_row, rows),
        "",
        f"{LEGEND}. {_escaped('; '.join(titles(grid.properties)))}.",
        "",
        f"{_escaped(totals(grid))}.",
        "",
    ]
    return "\n".join([*lines, *_markdown_notes(grid)])


def _markdown_notes(grid: Grid) -> list[str]:
    lines = []
    if notes := published_notes(grid):
        lines += [f"{published_heading()}:", "", *(f"- {_escaped(text)}" for text in notes), ""]
    header = ["target", "property", "verdict", *CERTIFICATE_HEADINGS, "witness, reason"]
    rows = [
        [cell.target, cell.property, cell.verdict.symbol, *certificate_numbers(cell), note(cell)]
        for cell in grid.in_order
    ]
    return [*lines, _markdown_row(header), "|" + " --- |" * len(header), *map(_markdown_row, rows), ""]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """`text` as Markdown that shows it as it is, in one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(visible(text).split()))
