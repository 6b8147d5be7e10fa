"""The content of a report of any kind: a summary, a heat map, and an entry for each violation or open question.

Texts may come from a guest and may hold anything. The page escapes them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

SIGNS = {
    "new": "✗",
    "broken": "✗",
    "unsafe": "✗",
    "not provided": "✗°",
    "undecided": "?",
    "known": "(✗)",
    "unsafe by its properties": "(✗)",
    "vulnerability": "!",
    "safe so far": "~",
    "fixed": "✓",
    "holds": "✓",
    "kept": "✓",
    "safe": "✓",
    "provided": "✓°",
    "not there": "–",
}
"""The sign of each standing, the worst first. On the page, it has a colour, too."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the summary. `standing` is that of the entries and squares that it counts, or empty."""

    label: str
    number: str
    standing: str = ""
    exactly: str = ""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the heat map."""

    target: str
    kernel: str


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """A violation or an open question.

    finding     the id of the finding that shows it; empty if there is none
    facts       further details: names and values
    operations  the workload in the `.ops` language; empty if nothing was run
    adversary   the weakest one that shows it; empty if this is not known
    """

    standing: str
    judges: tuple[str, ...]
    target: str
    kernel: str
    message: str
    finding: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    operations: str = ""
    adversary: str = ""


@dataclass(frozen=True, slots=True)
class Square:
    """One answer of the heat map, with the evidence under each of the map's headings.

    marks      text behind the sign
    adversary  the weakest one that breaks it; empty if it is not broken, or if this is not known
    """

    standing: str
    evidence: tuple[str, ...]
    marks: str = ""
    entries: tuple[ReportEntry, ...] = ()
    note: str = ""
    adversary: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the heat map. `judges` are those that it is about. Squares without an answer are None."""

    name: str
    judges: tuple[str, ...]
    squares: tuple[Square | None, ...]
    title: str = ""
    statement: str = ""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Squares by row and column, with the notes below them."""

    heading: str
    rows_are: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    headings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_kernels(self) -> bool:
        """Whether there are several kernels."""
        return len({column.kernel for column in self.columns}) > 1

    @property
    def squares(self) -> tuple[Square, ...]:
        """All squares, row by row."""
        return tuple(square for row in self.rows for square in row.squares if square is not None)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of short texts under a heading."""

    heading: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page but the stories.

    standing     of the whole, one of `SIGNS`
    others       entries that belong to no square
    judges_are   the noun for the judges of rows and entries
    adversaries  those that can be selected, the weakest first; empty if there is no choice
    """

    title: str
    standing: str
    headline: str
    about: tuple[str, ...]
    tiles: tuple[Tile, ...]
    heat_map: HeatMap
    others: tuple[ReportEntry, ...] = ()
    sections: tuple[Listing, ...] = ()
    judges_are: str = "property"
    adversaries: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """All entries, the worst first."""
        found = dict.fromkeys([*(entry for square in self.heat_map.squares for entry in square.entries), *self.others])
        order = list(SIGNS)
        return tuple(sorted(found, key=lambda entry: order.index(entry.standing)))

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of columns and entries."""
        return _distinct([*(at.target for at in self.heat_map.columns), *(entry.target for entry in self.entries)])

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of columns and entries."""
        return _distinct([*(at.kernel for at in self.heat_map.columns), *(entry.kernel for entry in self.entries)])

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges of rows and entries."""
        groups = [*(row.judges for row in self.heat_map.rows), *(entry.judges for entry in self.entries)]
        return _distinct(judge for judges in groups for judge in judges)

    @property
    def standings(self) -> tuple[str, ...]:
        """The standings of squares and entries, the worst first."""
        found = {square.standing for square in self.heat_map.squares} | {entry.standing for entry in self.entries}
        return tuple(standing for standing in SIGNS if standing in found)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, names)))
