"""The property table on the terminal, as Markdown and as JSON."""

import re
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from postcrash.model import Verdict
from postcrash.reports.grid import (
    CERTIFICATE_HEADINGS,
    Grid,
    certificate_numbers,
    grids,
    mark,
    note,
    published_heading,
    published_notes,
    symbol,
    titles,
    totals,
)
from postcrash.reports.plain import Json
from postcrash.reports.records import Cell
from postcrash.reports.text import visible

LEGEND = "✓ holds, ✗ violated, ? undecided, — cannot be asked of the target"
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
        console.print(_rich_table(grid))
        for line in _footnotes(grid):
            console.print(Text(visible(line)), soft_wrap=True)
        console.print()


def to_markdown(cells: Sequence[Cell]) -> str:
    """The tables and their footnotes in Markdown, with tables as GitHub reads them."""
    return "\n".join(_markdown(grid) for grid in grids(cells))


def _rich_table(grid: Grid) -> Table:
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
    lines = [f"{LEGEND}: {', '.join(titles(grid.properties))}", totals(grid)]
    notes = published_notes(grid)
    lines += [f"{published_heading()}:", *(f"  {text}" for text in notes)] if notes else []
    return [*lines, *(f"{symbol(cell)} {cell.target} {cell.property} {note(cell)}" for cell in grid.noted)]


def _markdown(grid: Grid) -> str:
    header = ["", *grid.properties]
    rows = [[target, *(mark(cell) if cell else NOT_ASKED for cell in cells)] for target, cells in grid.rows]
    lines = [
        f"**{_escaped(grid.title[:1].upper() + grid.title[1:])}**",
        "",
        _markdown_row(header),
        "|" + " --- |" + " :-: |" * len(grid.properties),
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
        [cell.target, cell.property, symbol(cell), *certificate_numbers(cell), note(cell)] for cell in grid.in_order
    ]
    return [*lines, _markdown_row(header), "|" + " --- |" * len(header), *map(_markdown_row, rows), ""]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """`text` as Markdown that shows it as it is, in one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(visible(text).split()))
