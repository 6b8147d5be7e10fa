"""Needs times gives: applications down, file systems across, and in each cell whether they go together."""

import datetime
from collections.abc import Sequence

from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.reports.tables.table import NOT_ASKED, page_head
from postcrash.store.table_rows import NeedsCell, NeedsRow

LEGEND = (
    "✓ safe; ~ safe on the real file system, and the properties leave nothing wrong as far as was looked; "
    "✗ unsafe, with a witness on the real file system; (✗) safe there, yet what is known of its properties does not "
    f"make it so; ? undecided; {NOT_ASKED} not asked"
)


def needs_markdown(
    rows: Sequence[NeedsRow],
    cells: Sequence[NeedsCell],
    *,
    command: str,
    kernel: str,
    model: str,
    date: datetime.date,
) -> str:
    """The table in Markdown, with what each application needs, what goes wrong where, and certificates."""
    return "\n".join(
        [
            *page_head(
                "What applications need, and what file systems give",
                date,
                command,
                f" on {escaped(kernel)}, device model {model},",
            ),
            f"How to read it: docs/needs.md. {LEGEND}.",
            "",
            *_together(rows, cells),
            "## What each needs",
            "",
            "Each set is enough, and without any of its properties it is not. (first N): no more folders than these",
            "were judged under it. “…” stands for sets not looked for.",
            "",
            *markdown_table(("application", "needs one of", "calls", "changes", "folders judged"), map(_needs, rows)),
            "## What is wrong, or not known",
            "",
            *_wrong(cells),
            "## Certificates",
            "",
            *_certificates(cells),
        ]
    )


def _together(rows: Sequence[NeedsRow], cells: Sequence[NeedsCell]) -> list[str]:
    """The table of applications and targets."""
    targets = list(dict.fromkeys(cell.target for cell in cells))
    by_place = {(cell.application, cell.target): cell for cell in cells}
    marks = [(row.application, *(_mark(by_place.get((row.application, name))) for name in targets)) for row in rows]
    return markdown_table(("application", *targets), map(markdown_row, marks))


def _wrong(cells: Sequence[NeedsCell]) -> list[str]:
    """The cells with something to say, and what it is."""
    rows = (
        (cell.application, cell.target, cell.symbol, cell.because, " or ".join(cell.lacking), cell.finding)
        for cell in cells
        if cell.because
    )
    return markdown_table(("application", "target", "", "why", "prevented by", "finding"), map(markdown_row, rows))


def _certificates(cells: Sequence[NeedsCell]) -> list[str]:
    """What each cell rests on."""
    head = ("application", "target", "crash states", "recoveries", "folders of the model")
    counts = ((cell.application, cell.target, cell.states, cell.recoveries, cell.folders) for cell in cells)
    return markdown_table(head, [markdown_row([str(each) for each in row]) for row in counts])


def _needs(row: NeedsRow) -> str:
    sets = "; ".join(row.sets) if row.sets else "what no property gives"
    more = "" if row.is_complete else "; …"
    return markdown_row((row.application, sets + more, str(row.calls), str(row.changes), str(row.folders)))


def _mark(cell: NeedsCell | None) -> str:
    return NOT_ASKED if cell is None else cell.symbol
