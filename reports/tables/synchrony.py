"""The table of external synchrony: file systems down, programs across, and whether what each says is true."""

import datetime
from collections.abc import Sequence

from postcrash.model import Verdict
from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.reports.tables.table import NOT_ASKED, page_head
from postcrash.store.audit_cells import SynchronyCell


def synchrony_markdown(
    cells: Sequence[SynchronyCell], *, command: str, kernel: str, model: str, date: datetime.date
) -> str:
    """The table in Markdown, with what is wrong, and a certificate for each cell."""
    programs, targets = (
        list(dict.fromkeys(names)) for names in zip(*((c.program, c.target) for c in cells), strict=True)
    )
    by_place = {(cell.program, cell.target): cell for cell in cells}
    judges = list(cells[0].answers)
    columns = [(program, judge) for program in programs for judge in judges]
    rows = [
        markdown_row([target, *(_mark(by_place.get((program, target)), judge) for program, judge in columns)])
        for target in targets
    ]
    lines = [
        *page_head("External synchrony", date, command, f" on {escaped(kernel)}, device model {model},"),
        "After a crash at any instant, is what a program says true once it has left the machine (durability), and is "
        "nothing there without what came before it (order; docs/synchrony.md)? "
        f"✓ yes, ✗ no, ? undecided, {NOT_ASKED} not asked.",
        "",
        *markdown_table(("file system", *(f"{program}: {judge}" for program, judge in columns)), rows),
    ]
    wrong = [
        (cell.target, cell.program, judge, answer.verdict.symbol, answer.why, answer.finding)
        for cell in cells
        for judge, answer in cell.answers.items()
        if answer.verdict is not Verdict.HOLDS
    ]
    if wrong:
        header = ("file system", "program", "judge", "", "why", "finding")
        lines += ["## What is wrong, or not known", "", *markdown_table(header, map(markdown_row, wrong))]
    certified = ("file system", "program", "crash states", "recoveries")
    certificates = [(c.target, c.program, f"{c.states} of {c.total}", str(c.recoveries)) for c in cells]
    return "\n".join([*lines, "## Certificates", "", *markdown_table(certified, map(markdown_row, certificates))])


def _mark(cell: SynchronyCell | None, judge: str) -> str:
    return NOT_ASKED if cell is None else cell.answers[judge].verdict.symbol
