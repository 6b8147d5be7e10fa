"""Show progress on a terminal. Nothing is shown elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.output import notes
from postcrash.reports.store.records import Finding
from postcrash.reports.tables.found import found_text


class TerminalProgress:
    """A bar of workloads and a count of recoveries, on standard error."""

    def __init__(self, workloads: int | None, *, rates: bool = False) -> None:
        """`workloads`: how many there will be, or None if that is not known. `rates`: show numbers per second."""
        console = notes()
        self._recoveries, self._finished, self._rates = 0, 0, rates
        self._started = time.monotonic()
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("workloads"),
            TextColumn("{task.fields[recoveries]} recoveries{task.fields[rates]}"),
            TimeElapsedColumn(),
            console=console,
            disable=console.quiet or not console.is_terminal,
            transient=True,
        )
        self._task = self._bars.add_task("starting guests", total=workloads, recoveries=0, rates="")

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
        self._bars.update(self._task, recoveries=self._recoveries, rates=self._rate())

    def finished(self, plan: Plan, examination: Examination) -> None:
        """See `campaign.Progress`."""
        self._finished += 1
        self._bars.update(self._task, advance=1, description=f"{plan.kernel} {plan.target.name}")

    def skipped(self) -> None:
        """See `hunt.HuntProgress`."""
        self._bars.update(self._task, advance=1)

    def found(self, finding: Finding) -> None:
        """See `hunt.HuntProgress`."""
        self._bars.console.print(found_text(finding), markup=False, highlight=False, soft_wrap=True)

    def _rate(self) -> str:
        if not self._rates:
            return ""
        seconds = time.monotonic() - self._started
        return f", {self._finished / seconds:.1f} workloads/s, {self._recoveries / seconds:.0f} recoveries/s"
