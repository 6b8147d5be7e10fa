"""Show progress on a terminal. Nothing is shown elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Column

from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.files.output import notes
from postcrash.model.numbers import counted
from postcrash.model.text import INVOCATION
from postcrash.reports.tables.finding_summary import found_text
from postcrash.store.records import Finding

_BAR_WIDTH = 16
_TIME_WIDTH = 7
"""The width of a time such as 0:01:02, which a narrow terminal would cut."""


class TerminalProgress:
    """A bar of workloads on standard error, with covered crash states, the rate of recoveries, and times."""

    def __init__(self, workloads: int | None, invocation: str = INVOCATION) -> None:
        """`workloads`: how many there will be, or None if that is not known.

        `invocation` is how postcrash is called with the store that has what is found.
        """
        console = notes()
        has_many = workloads != 1
        self._recoveries, self._states, self._invocation = 0, 0, invocation
        self._started = time.monotonic()
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(_BAR_WIDTH),
            MofNCompleteColumn(),
            TextColumn("workloads, {task.fields[counts]}"),
            TimeElapsedColumn(table_column=Column(min_width=_TIME_WIDTH)),
            *(
                [TimeRemainingColumn(table_column=Column(min_width=_TIME_WIDTH)), TextColumn("left")]
                if has_many
                else []
            ),
            console=console,
            disable=console.quiet or not console.is_terminal,
            transient=True,
        )
        self._task = self._bars.add_task("starting guests", total=workloads, counts=self._counts())

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def recoveries(self, count: int) -> None:
        """See `campaign.Progress`."""
        self._recoveries += count
        self._bars.update(self._task, counts=self._counts())

    def finished(self, plan: Plan, examination: Examination) -> None:
        """See `campaign.Progress`."""
        self._states += examination.covered
        self._bars.update(self._task, advance=1, counts=self._counts(), description=f"{plan.kernel} {plan.target.name}")

    def skipped(self) -> None:
        """See `hunt.HuntProgress`."""
        self._bars.update(self._task, advance=1)

    def found(self, finding: Finding) -> None:
        """See `hunt.HuntProgress`."""
        self._bars.console.print(found_text(finding, self._invocation), markup=False, highlight=False, soft_wrap=True)

    def _counts(self) -> str:
        rate = self._recoveries / max(time.monotonic() - self._started, 1)
        return f"{counted(self._states)} states, {rate:.0f} recoveries/s"
