"""The report of what applications need: applications down, file systems across, and vulnerabilities in the sources."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from postcrash.model import Verdict
from postcrash.model.numbers import counted, grouped, plural
from postcrash.reports.page.report import (
    SIGNS,
    HeatMap,
    Listing,
    Report,
    ReportEntry,
    Square,
    TableColumn,
    TableRow,
    Tile,
)
from postcrash.reports.tables.needs import LEGEND
from postcrash.store.table_rows import NeedsCell, NeedsRow

TITLE = "What applications need, and what file systems give"
ANYWHERE = "a file system without it"
"""The target of vulnerabilities in sources: a file system that may lose everything that nothing protects."""

_STANDINGS = {"✓": "safe", "~": "safe so far", "✗": "unsafe", "(✗)": "unsafe by its properties", "?": "undecided"}
"""The standings for the marks of the table, the best first."""


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A failure of an application on a file system that may lose everything that no fsync or its like protects.

    message      of the application's check
    lost         the changes whose loss suffices, each with its system call and the lines of the source
    last_output  of the application
    prevented    properties of which each one prevents the failure; empty: none does
    """

    application: str
    message: str
    lost: tuple[str, ...]
    last_output: str
    prevented: tuple[str, ...]


def report_of_needs(
    rows: Sequence[NeedsRow],
    cells: Sequence[NeedsCell],
    vulnerabilities: Sequence[Vulnerability],
    about: str,
    kernel: str,
) -> Report:
    """The report. `about` says when and how it was made; `kernel` is the label of the cells' kernel."""
    counts = Counter(_STANDINGS[cell.symbol] for cell in cells)
    unsafe = counts["unsafe"]
    headline = f"{plural(unsafe, 'cell')} unsafe" if unsafe else "No cell is unsafe"
    if not cells:
        headline = f"{plural(len(rows), 'application')}, run on no file system"
    return Report(
        title=TITLE,
        standing=next((word for word in SIGNS if counts[word]), "undecided"),
        headline=headline + (f", {counts['undecided']} undecided" if counts["undecided"] else ""),
        about=(about,),
        tiles=tuple(_tiles(counts, cells, len(set(vulnerabilities)))),
        heat_map=_heat_map(rows, cells, kernel),
        others=tuple(map(_entry_of_source, vulnerabilities)),
        sections=(Listing("What each needs", tuple(map(_needs, rows))),),
        judges_are="application",
    )


def _tiles(counts: Counter[str], cells: Sequence[NeedsCell], vulnerabilities: int) -> Iterator[Tile]:
    for standing in ("unsafe", "unsafe by its properties", "undecided", "safe so far", "safe"):
        yield Tile(standing, grouped(counts[standing]), standing)
    yield Tile("vulnerabilities in the sources", grouped(vulnerabilities), "vulnerability")
    states = sum(cell.states for cell in cells)
    yield Tile("crash states covered", counted(states), exactly=grouped(states))


def _heat_map(rows: Sequence[NeedsRow], cells: Sequence[NeedsCell], kernel: str) -> HeatMap:
    by_place = {(cell.application, cell.target): cell for cell in cells}
    targets = tuple(dict.fromkeys(cell.target for cell in cells))
    return HeatMap(
        heading=f"Applications on file systems, {kernel}",
        rows_are="application",
        columns=tuple(TableColumn(target, kernel) for target in targets),
        rows=tuple(
            TableRow(
                name=row.application,
                judges=(row.application,),
                squares=tuple(_square(by_place.get((row.application, target)), kernel) for target in targets),
            )
            for row in rows
        ),
        headings=("crash states", "recoveries", "folders of the model", "prevented by"),
        notes=(f"{LEGEND}.",),
    )


def _square(cell: NeedsCell | None, kernel: str) -> Square | None:
    if cell is None:
        return None
    counts = (counted(cell.states), grouped(cell.recoveries), grouped(cell.folders))
    is_shown = bool(cell.finding) or cell.real is not Verdict.HOLDS
    return Square(
        standing=_STANDINGS[cell.symbol],
        evidence=(*counts, " or ".join(cell.lacking)),
        entries=(_entry(cell, kernel),) if is_shown else (),
        note="" if is_shown else cell.because,
    )


def _entry(cell: NeedsCell, kernel: str) -> ReportEntry:
    return ReportEntry(
        standing=_STANDINGS[cell.symbol],
        judges=(cell.application,),
        target=cell.target,
        kernel=kernel,
        message=cell.because,
        finding=cell.finding,
        facts=(("prevented by", " or ".join(cell.lacking)),) if cell.lacking else (),
    )


def _entry_of_source(vulnerability: Vulnerability) -> ReportEntry:
    facts = [("lost", lost) for lost in vulnerability.lost]
    facts += [("it had said", vulnerability.last_output)] if vulnerability.last_output else []
    return ReportEntry(
        standing="vulnerability",
        judges=(vulnerability.application,),
        target=ANYWHERE,
        kernel="",
        message=vulnerability.message,
        facts=(*facts, ("prevented by", " or ".join(vulnerability.prevented) or "no property")),
    )


def _needs(row: NeedsRow) -> str:
    sets = "; or ".join(row.sets) or "what no property gives"
    open_ = "" if row.is_complete else "; there may be other sets"
    return (
        f"{row.application}: {sets}{open_} ({plural(row.folders, 'folder')} of {plural(row.changes, 'change')} judged)"
    )
