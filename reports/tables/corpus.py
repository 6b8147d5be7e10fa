"""The table of a corpus: workloads down, targets across, and in each cell a verdict for each kernel."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from postcrash.model import Verdict, worst
from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.reports.tables.grid import UNPROMISED_MARK
from postcrash.reports.tables.matrix import CHANGED_MARK
from postcrash.reports.tables.table import NOT_ASKED, page_head
from postcrash.store.json_codec import Json, to_plain
from postcrash.store.table_rows import NOT_THERE, SHORTER_MARK, CorpusColumn, Result

LEGEND = (
    f"✓ holds, ✗ violated, ? undecided, ?{SHORTER_MARK} holds without checkpoint at the end, "
    f"{NOT_THERE} not on this file system, {NOT_ASKED} of another file system, "
    f"{UNPROMISED_MARK} nobody promised otherwise, {CHANGED_MARK} differs between kernels"
)


@dataclass(frozen=True)
class CorpusTable:
    """Columns of the same workloads and targets. `command` made them, and `level` is what was expected."""

    columns: tuple[CorpusColumn, ...]
    workloads: tuple[str, ...]
    targets: tuple[str, ...]
    level: str
    model: str
    command: str
    date: datetime.date

    @property
    def title(self) -> str:
        """For example `kernels 5.10, 6.1 in this order, level practice, device model cache`."""
        names = ", ".join(column.name for column in self.columns)
        return f"kernels {names} in this order, level {self.level}, device model {self.model}"

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all runs. UNDECIDED if there were none."""
        runs = [result for column in self.columns for result in column.results if not result.absent]
        return worst([result.verdict for result in runs] or [Verdict.UNDECIDED])

    def place(self, workload: str, target: str) -> tuple[Result, ...]:
        """The results of one cell, in the order of the columns. Empty if the workload is for another file system."""
        found = (column.by_place.get((workload, target)) for column in self.columns)
        return tuple(result for result in found if result is not None)

    def mark(self, workload: str, target: str) -> str:
        """A symbol for each kernel."""
        results = self.place(workload, target)
        verdicts = {result.verdict for result in results if not result.absent}
        changed = CHANGED_MARK if {Verdict.HOLDS, Verdict.VIOLATED} <= verdicts else ""
        objections = [each for result in results for each in result.objections]
        unexpected = UNPROMISED_MARK if objections and not any(each.is_expected for each in objections) else ""
        return "".join(result.symbol for result in results) + unexpected + changed if results else NOT_ASKED

    @property
    def findings(self) -> tuple[str, ...]:
        """The ids of all findings, in the order of `objections`."""
        places = (self.place(workload, target) for workload in self.workloads for target in self.targets)
        return tuple(each.finding for results in places for result in results for each in result.objections)

    @property
    def objections(self) -> tuple[tuple[str, ...], ...]:
        """Rows in order: workload, target, judge, message, what it breaks, and `6.1 f-12ab…, 7.2 f-98fe…` or a link.

        If the message differs between kernels, there is a row for each message. The link is in Markdown.
        """
        found: dict[tuple[str, str, str, str, str, str], list[str]] = {}
        for workload in self.workloads:
            for target in self.targets:
                for column, result in zip(self.columns, self.place(workload, target), strict=False):
                    for each in result.objections:
                        link = f": [{Path(each.page).stem}]({each.page})" if each.page else ""
                        key = (workload, target, each.judge, each.message, each.meaning, link)
                        found.setdefault(key, []).append(column.name if link else f"{column.name} {each.finding}")
        return tuple((*key, ", ".join(shown) + link) for (*key, link), shown in found.items())

    @property
    def open(self) -> tuple[str, ...]:
        """Lines with targets, kernels and workloads, one for each reason why something is undecided or not there."""
        kernels: dict[tuple[str, str, str, str], list[str]] = {}
        for column in self.columns:
            for result in column.results:
                if reason := result.absent or result.reason:
                    key = (result.symbol, result.target, reason, result.workload)
                    kernels.setdefault(key, []).append(column.name)
        workloads: dict[tuple[str, str, str, str], list[str]] = {}
        for (shown, target, reason, workload), names in kernels.items():
            workloads.setdefault((shown, target, ", ".join(names), reason), []).append(workload)
        return tuple(
            f"{shown} {target} on {names}: {', '.join(found)}: {reason}"
            for (shown, target, names, reason), found in workloads.items()
        )

    def to_json(self) -> Json:
        """As decoded JSON. Numbers of crash states are decimal text."""
        return {
            "command": self.command,
            "date": self.date.isoformat(),
            "expect": self.level,
            "model": self.model,
            "verdict": self.verdict.name.lower(),
            "kernels": [
                {"name": column.name, "kernels": list(column.kernels), "results": [*map(_to_json, column.results)]}
                for column in self.columns
            ],
        }


def _to_json(result: Result) -> Json:
    return {**to_plain(result), "verdict": result.verdict.name.lower(), "states": str(result.states)}


def print_corpus(table: CorpusTable, console: Console) -> None:
    """Print the table and below it each objection, what is undecided, and what the table rests on."""
    console.print(table.title, style="italic", markup=False, highlight=False)
    grid = Table(box=box.SIMPLE_HEAD)
    grid.add_column("", no_wrap=True)
    for target in table.targets:
        grid.add_column(Text(target), no_wrap=True)
    for workload in table.workloads:
        grid.add_row(Text(workload), *(Text(table.mark(workload, target)) for target in table.targets))
    console.print(grid)
    lines = [f"✗ {' · '.join(filter(None, row))}" for row in table.objections]
    for line in (LEGEND, *lines, *table.open, *(column.total for column in table.columns)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(table.verdict.name, style="bold", highlight=False)


def corpus_markdown(table: CorpusTable) -> str:
    """The table in Markdown, with the command that made it."""
    header = ("workload", *table.targets)
    rows = ((workload, *(table.mark(workload, target) for target in table.targets)) for workload in table.workloads)
    lines = [
        *page_head("A corpus of workloads on targets and kernels", table.date, table.command),
        f"Each cell has a verdict for {escaped(table.title)}: {escaped(LEGEND)}.",
        "",
        *(f"- {escaped(column.total)}" for column in table.columns),
        "",
        *_markdown_table(header, rows),
    ]
    if table.objections:
        heading = ("workload", "target", "judge", "what is wrong", "what that breaks", "finding or page")
        lines += ["## What is wrong", "", *_markdown_table(heading, table.objections, links=True)]
    if table.open:
        lines += ["## Undecided, or not there", "", *(f"- {escaped(line)}" for line in table.open), ""]
    return "\n".join(lines)


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, links: bool = False) -> list[str]:
    """If `links` is set, the last cell of each row is Markdown already."""
    body = [f"{markdown_row(row[:-1])} {row[-1]} |" if links else markdown_row(row) for row in rows]
    return markdown_table(header, body)
