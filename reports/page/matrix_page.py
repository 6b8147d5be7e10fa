"""The report of a table or a matrix: properties down, targets and kernels across."""

from collections import Counter
from collections.abc import Iterator, Sequence

from postcrash.model import Verdict
from postcrash.model.numbers import counted, grouped, plural
from postcrash.properties import PROPERTIES
from postcrash.properties.adversary import MARKS, Adversary
from postcrash.reports.page.report import HeatMap, Listing, Report, ReportEntry, Square, TableColumn, TableRow, Tile
from postcrash.reports.tables import grid, table
from postcrash.reports.tables.matrix import CHANGED_MARK, Matrix
from postcrash.reports.tables.matrix import LEGEND as MATRIX_LEGEND
from postcrash.store.records import Cell, Finding
from postcrash.store.table_rows import NOT_THERE

TITLE = "Post-crash properties"

_NOT_THERE, _UNDECIDED = "not there", "undecided"
_Cells = dict[tuple[str, str, str], Cell]
"""Cells by property, target, and the name of the kernel's column."""


def report_of_matrix(matrix: Matrix, findings: Sequence[Finding]) -> Report:
    """The report of `matrix`, which has one or more kernels, and of `findings`, its witnesses among them."""
    cells = {(c.property, c.target, column.name): c for column in matrix.columns for c in column.cells}
    counts = Counter(map(_standing, cells.values()))
    broken = f"{plural(counts['broken'], 'promise')} broken" if counts["broken"] else "No promise is broken"
    return Report(
        title=TITLE,
        standing=next((standing for standing in ("broken", _UNDECIDED) if counts[standing]), "kept"),
        headline=broken + (f", {counts[_UNDECIDED]} undecided" if counts[_UNDECIDED] else ""),
        about=(f"Made on {matrix.date.isoformat()} by {matrix.command}",),
        tiles=tuple(_tiles(counts, matrix)),
        heat_map=_heat_map(matrix, cells),
        others=tuple(_others(cells, findings)),
        sections=tuple(_sections(matrix)),
        adversaries=_adversaries(matrix.cells),
    )


def _standing(cell: Cell) -> str:
    if not cell.workloads:
        return _NOT_THERE
    standing = cell.statements.standing(cell.verdict)
    return standing.value if standing else _UNDECIDED


def _adversary(cell: Cell) -> str:
    """The adversary that breaks the cell's property, in words; empty if it is not broken."""
    return cell.adversary.shown if cell.verdict is Verdict.VIOLATED else ""


def _adversaries(cells: Sequence[Cell]) -> tuple[str, ...]:
    """A power cut alone, and the adversaries of cells, the weakest first. Empty if there is only the first."""
    found = {Adversary.PLAIN, *(cell.adversary for cell in cells if cell.verdict is Verdict.VIOLATED)}
    return tuple(adversary.shown for adversary in sorted(found)) if len(found) > 1 else ()


def _tiles(counts: Counter[str], matrix: Matrix) -> Iterator[Tile]:
    for standing in ("broken", "not provided", _UNDECIDED, "kept", "provided"):
        yield Tile(standing, grouped(counts[standing]), standing)
    states = sum(column.states for column in matrix.columns)
    yield Tile("crash states covered", counted(states), exactly=grouped(states))


def _heat_map(matrix: Matrix, cells: _Cells) -> HeatMap:
    known = {prop.name: prop for prop in PROPERTIES}
    targets = dict.fromkeys(cell.target for cell in matrix.cells)
    changed = {(place.prop, place.target) for place in matrix.changes}
    columns = tuple(TableColumn(target, column.name) for target in targets for column in matrix.columns)
    rows = (
        TableRow(
            name=name,
            title=known[name].title if name in known else "",
            statement=f"{known[name].statement} ({known[name].source})" if name in known else "",
            judges=(name,),
            squares=tuple(
                _square(cells.get((name, at.target, at.kernel)), at.kernel, changed=(name, at.target) in changed)
                for at in columns
            ),
        )
        for name in dict.fromkeys([*(name for name in known if name in matrix.properties), *matrix.properties])
    )
    return HeatMap(
        heading=_heading(matrix),
        rows_are="property",
        columns=columns,
        rows=tuple(rows),
        headings=("promise", "adversary", *grid.CERTIFICATE_HEADINGS),
        notes=tuple(_notes(matrix)),
    )


def _notes(matrix: Matrix) -> Iterator[str]:
    yield MATRIX_LEGEND if len(matrix.columns) > 1 else table.LEGEND
    yield from filter(None, [grid.adversary_legend(matrix.cells)])
    yield from (column.total for column in matrix.columns)


def _heading(matrix: Matrix) -> str:
    title = matrix.title if len(matrix.columns) > 1 else f"kernel {matrix.columns[0].name}, device model {matrix.model}"
    return title[:1].upper() + title[1:]


def _square(cell: Cell | None, kernel: str, *, changed: bool) -> Square | None:
    if cell is None:
        return None
    statement = cell.statements.promise or cell.statements.denial
    words = statement.statement if statement and cell.workloads else ""
    promise = ": ".join(filter(None, [grid.standing(cell), words]))
    adversary = MARKS[cell.adversary] if cell.verdict is Verdict.VIOLATED else ""
    differs = grid.otherwise_published(cell) is not None
    entries = tuple(_entries(cell, kernel))
    return Square(
        standing=_standing(cell),
        evidence=(promise, cell.adversary.shown, *grid.certificate_numbers(cell)),
        marks=adversary + (CHANGED_MARK if changed else "") + (grid.DIFFERS_MARK if differs else ""),
        entries=entries,
        note="" if entries else grid.note(cell),
        adversary=_adversary(cell),
    )


def _entries(cell: Cell, kernel: str) -> Iterator[ReportEntry]:
    """An entry, unless the cell's property holds or was not tested."""
    if cell.workloads and cell.verdict is not Verdict.HOLDS:
        facts = ("promise", grid.standing(cell)), ("takes", _adversary(cell))
        yield ReportEntry(
            standing=_standing(cell),
            judges=(cell.property,),
            target=cell.target,
            kernel=kernel,
            message=cell.reason,
            finding=cell.witness or "",
            facts=tuple((name, value) for name, value in facts if value),
            adversary=_adversary(cell),
        )


def _others(cells: _Cells, findings: Sequence[Finding]) -> Iterator[ReportEntry]:
    """Findings that are no cell's witness. It is not known which promises they break."""
    witnesses = {cell.witness for cell in cells.values()}
    for finding in findings:
        if finding.id not in witnesses:
            place = finding.target, finding.kernel, finding.message, finding.id
            yield ReportEntry("not provided", (finding.checker,), *place)


def _sections(matrix: Matrix) -> Iterator[Listing]:
    if matrix.changes:
        yield Listing("Where kernels differ", tuple(place.change for place in matrix.changes))
    notes = [note for table_grid in grid.grids(matrix.cells) for note in grid.published_notes(table_grid)]
    if notes:
        yield Listing(grid.published_heading(), tuple(notes))
    absent = tuple(line for line in matrix.open if line.startswith(NOT_THERE))
    if absent:
        yield Listing("Not there", absent)
