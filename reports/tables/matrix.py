"""The table for several kernels: targets down, properties across, and in each cell a verdict for each kernel."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from postcrash.model import Verdict
from postcrash.reports.tables.grid import UNPROMISED_LEGEND, standing_mark, symbol
from postcrash.store.json_codec import Json
from postcrash.store.records import Cell
from postcrash.store.table_rows import NOT_THERE, Column

CHANGED_MARK = "*"
"""Marks a cell that holds on one kernel and is violated on another."""
LEGEND = (
    f"✓ holds, ✗ violated, ? undecided, {NOT_THERE} not there, {CHANGED_MARK} differs between kernels; "
    f"{UNPROMISED_LEGEND}"
)


@dataclass(frozen=True)
class MatrixPlace:
    """One cell of the matrix: a target and a property, with a cell of each column."""

    target: str
    prop: str
    columns: tuple[Column, ...]

    @cached_property
    def cells(self) -> tuple[tuple[str, Cell], ...]:
        """The cells with the columns' names."""
        return tuple((column.name, column.by_place[self.target, self.prop]) for column in self.columns)

    @property
    def changed(self) -> bool:
        """Whether it holds on one kernel and is violated on another."""
        return {Verdict.HOLDS, Verdict.VIOLATED} <= {cell.verdict for _, cell in self.cells if cell.workloads}

    @property
    def standing_mark(self) -> str:
        """The mark of the verdicts. Documents promise the same for all kernels."""
        return next(filter(None, (standing_mark(cell) for _, cell in self.cells)), "")

    @property
    def mark(self) -> str:
        """A symbol for each kernel."""
        symbols = "".join(symbol(cell) for _, cell in self.cells)
        return symbols + self.standing_mark + (CHANGED_MARK if self.changed else "")

    @property
    def change(self) -> str:
        """For example `ext4-current P5: ✓ 5.10; ✗ 6.1 f-12ab…, 7.2 f-98fe…: A is full of zeros`."""
        parts = []
        for verdict, group in groupby(self.cells, key=lambda item: symbol(item[1])):
            named = ", ".join(" ".join(filter(None, (name, cell.witness))) for name, cell in group)
            parts.append(f"{verdict} {named}")
        reason = next(cell.reason for _, cell in self.cells if cell.verdict is Verdict.VIOLATED)
        return f"{self.target} {self.prop}: {'; '.join(parts)}: {reason}"


@dataclass(frozen=True)
class Matrix:
    """Columns that answer the same questions on one device model. `command` made them."""

    columns: tuple[Column, ...]
    model: str
    command: str
    date: datetime.date

    @property
    def title(self) -> str:
        """For example `kernels 5.10, 6.1, 6.12, 7.2 in this order, device model cache`."""
        return f"kernels {', '.join(column.name for column in self.columns)} in this order, device model {self.model}"

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, column by column."""
        return tuple(cell for column in self.columns for cell in column.cells)

    @property
    def properties(self) -> tuple[str, ...]:
        """In the order of the cells."""
        return tuple(dict.fromkeys(cell.property for cell in self.cells))

    @cached_property
    def rows(self) -> tuple[tuple[str, tuple[MatrixPlace, ...]], ...]:
        """Each target with a place for each property."""
        targets = dict.fromkeys(cell.target for cell in self.cells)
        return tuple(
            (target, tuple(MatrixPlace(target, prop, self.columns) for prop in self.properties)) for target in targets
        )

    @property
    def changes(self) -> tuple[MatrixPlace, ...]:
        """The places at which kernels differ, row by row."""
        return tuple(place for _, places in self.rows for place in places if place.changed)

    @property
    def open(self) -> tuple[str, ...]:
        """One line for each reason why cells are undecided or not there: `? xfs P1, P2 on 5.10, 6.1: reason`."""
        reasons: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
        for column in self.columns:
            for cell in column.cells:
                if not cell.workloads or cell.verdict is Verdict.UNDECIDED:
                    reasons.setdefault((symbol(cell), cell.target, cell.reason), []).append(
                        (cell.property, column.name)
                    )
        return tuple(
            f"{shown} {target} {_joined(prop for prop, _ in found)} on {_joined(name for _, name in found)}: {reason}"
            for (shown, target, reason), found in reasons.items()
        )

    @property
    def witnesses(self) -> tuple[tuple[str, str, str, str], ...]:
        """Rows of target, property, what is wrong, and `6.1 f-12ab…, 7.2 f-98fe…`."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for name, cell in (named for _, places in self.rows for place in places for named in place.cells):
            if cell.witness is not None:
                key = (cell.target, cell.property, cell.reason)
                found.setdefault(key, []).append(f"{name} {cell.witness}")
        return tuple((*key, ", ".join(ids)) for key, ids in found.items())

    def to_json(self) -> Json:
        """As decoded JSON."""
        return {
            "command": self.command,
            "date": self.date.isoformat(),
            "model": self.model,
            "kernels": [
                {
                    "name": column.name,
                    "served": column.served,
                    "workloads": column.workloads,
                    "states": str(column.states),
                    "recoveries": column.recoveries,
                    "cells": [cell.to_json() for cell in column.cells],
                }
                for column in self.columns
            ],
            "changes": [
                {
                    "target": place.target,
                    "property": place.prop,
                    "verdicts": {name: cell.verdict.name.lower() for name, cell in place.cells},
                    "witnesses": {name: cell.witness for name, cell in place.cells if cell.witness},
                }
                for place in self.changes
            ],
        }


def _joined(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))
