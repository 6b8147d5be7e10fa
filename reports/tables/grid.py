"""Cells arranged as tables: targets down, properties across, one table for each kernel and device model."""

from collections.abc import Sequence
from dataclasses import dataclass

from postcrash.model import Verdict
from postcrash.model.numbers import grouped
from postcrash.properties import GROUPS, PROPERTIES
from postcrash.properties.adversary import MARKS
from postcrash.properties.promises import Standing, standing_text
from postcrash.reports.tables.published import SOURCE, published, published_for, why_otherwise
from postcrash.store.records import Cell
from postcrash.store.table_rows import NOT_THERE

DIFFERS_MARK = "†"
"""Marks a verdict that is not the published one."""

UNPROMISED_MARK = "°"
"""Marks a verdict about something that nobody promised."""
UNPROMISED_LEGEND = (
    f"{UNPROMISED_MARK} not promised: ✓ kept, ✗ broken, ✓{UNPROMISED_MARK} provided, ✗{UNPROMISED_MARK} not provided"
)

NAMES_CHARACTERS_MAX = 60
"""How many characters the names of properties may take side by side."""

CERTIFICATE_HEADINGS = ("crash states", "recoveries", "outcomes", "workloads", "premise seen in")


@dataclass(frozen=True)
class Grid:
    """The cells of one kernel and one device model."""

    kernel: str
    model: str
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        """For example `kernel UML 6.1.176, device model cache`."""
        return f"kernel {self.kernel}, device model {self.model}"

    @property
    def targets(self) -> tuple[str, ...]:
        """In the order in which they first came."""
        return tuple(dict.fromkeys(cell.target for cell in self.cells))

    @property
    def properties(self) -> tuple[str, ...]:
        """In the order of `PROPERTIES`, then the others in the order in which they first came."""
        given = dict.fromkeys(cell.property for cell in self.cells)
        known = [known.name for known in PROPERTIES if known.name in given]
        return tuple(dict.fromkeys([*known, *given]))

    def cell(self, target: str, prop: str) -> Cell | None:
        """The cell at this place; the last one if there are several. None if the question was not asked."""
        return next((c for c in reversed(self.cells) if (c.target, c.property) == (target, prop)), None)

    @property
    def rows(self) -> tuple[tuple[str, tuple[Cell | None, ...]], ...]:
        """Each target with its cells in the order of `properties`."""
        return tuple((target, tuple(self.cell(target, prop) for prop in self.properties)) for target in self.targets)

    @property
    def is_tall(self) -> bool:
        """Whether properties are in rows and targets in columns, because their names are too long side by side."""
        return sum(map(len, self.properties)) > NAMES_CHARACTERS_MAX

    @property
    def columns(self) -> tuple[tuple[str, tuple[Cell | None, ...]], ...]:
        """Each property with its cells in the order of `targets`."""
        return tuple((prop, tuple(self.cell(target, prop) for target in self.targets)) for prop in self.properties)

    @property
    def in_order(self) -> tuple[Cell, ...]:
        """The cells row by row."""
        return tuple(cell for _, cells in self.rows for cell in cells if cell is not None)

    @property
    def noted(self) -> tuple[Cell, ...]:
        """The cells for which there is a `note`, row by row."""
        return tuple(cell for cell in self.in_order if note(cell))


def grids(cells: Sequence[Cell]) -> tuple[Grid, ...]:
    """One grid for each kernel and device model, in the order in which they first came."""
    kinds = dict.fromkeys((cell.kernel, cell.model) for cell in cells)
    return tuple(
        Grid(kernel, model, tuple(cell for cell in cells if (cell.kernel, cell.model) == (kernel, model)))
        for kernel, model in kinds
    )


def group(prop: str) -> str:
    """The group of a property. Empty if it is not known."""
    return next((name for name, known in GROUPS.items() if prop in {each.name for each in known}), "")


def titles(properties: Sequence[str]) -> list[str]:
    """For each property that is known: `P1 ordered directory operations`."""
    known = {known.name: known.title for known in PROPERTIES}
    return [f"{name} {known[name]}" for name in properties if name in known]


def otherwise_published(cell: Cell) -> Verdict | None:
    """The published verdict, if it is the opposite one. An undecided cell contradicts nothing."""
    theirs = published(cell.target, cell.property)
    return theirs if cell.verdict is not Verdict.UNDECIDED and theirs is not cell.verdict else None


def symbol(cell: Cell) -> str:
    """The symbol of the verdict, or NOT_THERE if the target could run no workload."""
    return cell.verdict.symbol if cell.workloads else NOT_THERE


def standing_mark(cell: Cell) -> str:
    """UNPROMISED_MARK on a verdict about something that nobody promised; else empty."""
    standings = (Standing.PROVIDED, Standing.NOT_PROVIDED)
    return UNPROMISED_MARK if cell.statements.standing(cell.verdict) in standings else ""


def marked(cell: Cell) -> str:
    """The cell's symbol, with the mark of the weakest adversary that breaks it, and a mark if nobody promised it."""
    adversary = MARKS[cell.adversary] if cell.verdict is Verdict.VIOLATED else ""
    return symbol(cell) + adversary + standing_mark(cell)


def adversary_legend(cells: Sequence[Cell]) -> str:
    """What the marks of adversaries on ✗ mean, and which adversary ✓ stands up to."""
    seen = sorted({cell.adversary for cell in cells if cell.verdict is Verdict.VIOLATED})
    tried = max((cell.adversary for cell in cells if cell.verdict is Verdict.HOLDS), default=None)
    legend = [f"✗{MARKS[each]} takes {each.shown}" for each in seen]
    return "; ".join([*legend, *([] if tried is None else [f"✓ stands up to {tried.shown}"])])


def mark(cell: Cell) -> str:
    """The cell's symbol, with a mark if nobody promised it, and a mark if others published the opposite verdict."""
    return marked(cell) + (DIFFERS_MARK if otherwise_published(cell) is not None else "")


def standing(cell: Cell) -> str:
    """What the cell's verdict means together with the promise, in words."""
    return standing_text(cell.statements, cell.verdict)


def note(cell: Cell) -> str:
    """What must be said about the cell below the table: witness, reason, broken promise. Empty if there is nothing."""
    premise = "its premise was never seen" if cell.verdict is Verdict.HOLDS and not cell.relevant else ""
    parts = [part for part in (cell.witness, cell.reason, premise) if part]
    broken = f"; {standing(cell)}" if cell.statements.standing(cell.verdict) is Standing.BROKEN else ""
    return ": ".join(parts) + broken


def published_notes(grid: Grid) -> list[str]:
    """One line for each cell that differs from the published table: `btrfs P1: published ✗ (Linux 3.2)`, and why."""
    pairs = [(cell, otherwise_published(cell)) for cell in grid.in_order]
    return [_published_note(cell, verdict) for cell, verdict in pairs if verdict is not None]


def _published_note(cell: Cell, verdict: Verdict) -> str:
    why = why_otherwise(cell.target, cell.property)
    return f"{cell.target} {cell.property}: published {verdict.symbol} ({published_for(cell.property)})" + (
        f"; {why}" if why else ""
    )


def published_heading() -> str:
    """The meaning of the mark."""
    return f"{DIFFERS_MARK} differs from {SOURCE}"


def certificate_numbers(cell: Cell) -> tuple[str, ...]:
    """What the verdict covers, in the order of `CERTIFICATE_HEADINGS`."""
    numbers = (cell.states, cell.recoveries, cell.outcomes, cell.workloads, cell.relevant)
    return tuple(map(grouped, numbers))


def totals(grid: Grid) -> str:
    """The certificates of all cells together. A recovery that is judged for two properties counts twice."""
    cells = grid.in_order
    states, recoveries, workloads = (
        grouped(sum(number)) for number in zip(*((c.states, c.recoveries, c.workloads) for c in cells), strict=True)
    )
    cover = "1 cell covers" if len(cells) == 1 else f"{len(cells)} cells cover"
    return (
        f"{cover} {states} crash states with {recoveries} recoveries of {workloads} workloads; "
        "what is judged for two properties counts twice"
    )
