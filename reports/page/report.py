"""What a report shows, whatever it is about: a summary, a heat map, and one entry for each thing that is wrong or open.

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
"""What stands in place of a standing. A colour comes with it, but never alone. The worst ones come first."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the summary. `standing` is that of the entries and squares that it counts; empty if none are."""

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
    """Something that is wrong, or that could not be decided.

    finding     the id of the finding that shows it; empty if there is none
    facts       what else is known of it: names and values
    operations  what was run, in the `.ops` language; empty if nothing was
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

    marks      what stands behind the sign
    entries    what is wrong or open there
    note       what else must be said about it
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
    """A row of the heat map. `judges` are those that it is about. A square is None if the question was not asked."""

    name: str
    title: str
    statement: str
    judges: tuple[str, ...]
    squares: tuple[Square | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Squares by row and column, with what stands below them."""

    heading: str
    rows_are: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    headings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_kernels(self) -> bool:
        """Whether there are several."""
        return len({at.kernel for at in self.columns}) > 1

    @property
    def standings(self) -> tuple[str, ...]:
        """Those that occur, the worst first."""
        found = {square.standing for row in self.rows for square in row.squares if square is not None}
        return tuple(standing for standing in SIGNS if standing in found)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of short texts under a heading."""

    heading: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page but the stories.

    standing     of the whole, in a word of `SIGNS`
    others       entries that are no square's
    judges_are   what the judges of rows and entries are called
    adversaries  those that can be chosen, the weakest first; empty if there is nothing to choose
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
        squares = (square for row in self.heat_map.rows for square in row.squares if square is not None)
        found = dict.fromkeys([*(entry for square in squares for entry in square.entries), *self.others])
        order = list(SIGNS)
        return tuple(sorted(found, key=lambda entry: order.index(entry.standing)))

    @property
    def targets(self) -> tuple[str, ...]:
        """Of columns and entries, each once."""
        return _each_once([*(at.target for at in self.heat_map.columns), *(entry.target for entry in self.entries)])

    @property
    def kernels(self) -> tuple[str, ...]:
        """Of columns and entries, each once."""
        return _each_once([*(at.kernel for at in self.heat_map.columns), *(entry.kernel for entry in self.entries)])

    @property
    def judges(self) -> tuple[str, ...]:
        """Of rows and entries, each once."""
        judged = [*(row.judges for row in self.heat_map.rows), *(entry.judges for entry in self.entries)]
        return _each_once(judge for judges in judged for judge in judges)

    @property
    def standings(self) -> tuple[str, ...]:
        """Of squares and entries, the worst first."""
        found = {*self.heat_map.standings, *(entry.standing for entry in self.entries)}
        return tuple(standing for standing in SIGNS if standing in found)


def _each_once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, names)))
