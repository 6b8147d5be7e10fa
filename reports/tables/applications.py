"""The table of audits: applications down, file systems across, and in each cell a verdict with what it rests on."""

import datetime
import math
from collections.abc import Sequence

from postcrash.model import Verdict
from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.reports.tables.table import NOT_ASKED, page_head
from postcrash.store.audit_cells import AuditCell

LEGEND = f"✓ every promise is kept, ✗ one is broken, ? undecided, {NOT_ASKED} not asked"


def applications_markdown(
    cells: Sequence[AuditCell], *, command: str, kernel: str, model: str, date: datetime.date
) -> str:
    """The table in Markdown, with what breaks, and a certificate for each cell."""
    targets = list(dict.fromkeys(cell.target for cell in cells))
    by_place = {(cell.application, cell.target): cell for cell in cells}
    lines = [
        *page_head("Applications on file systems", date, command, f" on {escaped(kernel)}, device model {model},"),
        f"Does the application keep its promises after a crash at any instant (docs/audit.md)? {LEGEND}.",
        "",
        *markdown_table(
            ("application", *targets),
            [
                markdown_row([name, *(_mark(by_place.get((name, target))) for target in targets)])
                for name in dict.fromkeys(cell.application for cell in cells)
            ],
        ),
    ]
    open_cells = [cell for cell in cells if cell.verdict is not Verdict.HOLDS]
    if open_cells:
        rows = [(cell.application, cell.target, cell.verdict.symbol, cell.message, cell.finding) for cell in open_cells]
        header = ("application", "target", "", "why", "finding")
        lines += ["## What is wrong, or not known", "", *markdown_table(header, map(markdown_row, rows))]
    certificates = [
        (
            *(cell.application, cell.target, f"{cell.states} of {cell.total}", str(cell.recoveries)),
            *(str(cell.folders), str(cell.recordings), str(cell.ways), share_text(cell.unseen)),
        )
        for cell in cells
    ]
    certified = (
        *("application", "target", "crash states", "recoveries", "folders checked"),
        *("recordings", "different ways", "runs in other ways, at most (confidence 95%)"),
    )
    return "\n".join([*lines, "## Certificates", "", *markdown_table(certified, map(markdown_row, certificates))])


def share_text(share: float) -> str:
    """A bound in whole percent, never less than it is."""
    return f"{math.ceil(share * 100)}%"


def _mark(cell: AuditCell | None) -> str:
    return NOT_ASKED if cell is None else cell.verdict.symbol
