"""What was measured, as ratios to the asynchronous file system of the same round, and a table of it."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from postcrash.reports.markdown import markdown_row, markdown_table
from side_by_side.settings import ASYNCHRONOUS
from side_by_side.workload import Figures


@dataclass
class Results:
    """The values of each figure: by figure, by setting, one for each round.

    machine  what it was measured on, in words
    """

    machine: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, setting: str, figures: Figures) -> None:
        """One round of a workload."""
        for name, value in figures.items():
            self.values.setdefault(name, {}).setdefault(setting, []).append(value)

    def median(self, figure: str, setting: str) -> float | None:
        """Of all rounds. None if it was not measured."""
        found = self.values.get(figure, {}).get(setting)
        return statistics.median(found) if found else None

    def ratios(self, figure: str, setting: str, base: str = ASYNCHRONOUS.name) -> list[float]:
        """Its values as multiples of those of `base`, round by round. Empty if one of them was not measured."""
        found = self.values.get(figure, {})
        pairs = zip(found.get(setting, ()), found.get(base, ()), strict=False)
        return [value / of_base for value, of_base in pairs]

    def ratio(self, figure: str, setting: str, base: str = ASYNCHRONOUS.name) -> float | None:
        """The median of `ratios`."""
        ratios = self.ratios(figure, setting, base)
        return statistics.median(ratios) if ratios else None

    def table(self, settings: Iterable[str]) -> str:
        """Markdown: medians, and ratios to the asynchronous file system with their spread."""
        settings = list(settings)
        rows = [
            markdown_row([figure, *(self._cell(figure, setting) for setting in settings)]) for figure in self.values
        ]
        return "\n".join(markdown_table(["", *settings], rows))

    def _cell(self, figure: str, setting: str) -> str:
        value = self.median(figure, setting)
        if value is None:
            return "–"
        shown = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
        ratios = self.ratios(figure, setting)
        if setting == ASYNCHRONOUS.name or not ratios:
            return shown
        return f"{shown}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

    def write(self, file: Path) -> None:
        """As JSON."""
        file.write_text(json.dumps({"machine": self.machine, "values": self.values}, indent=1) + "\n")

    @staticmethod
    def read(files: Iterable[Path]) -> "Results":
        """What `write` has written. Of a figure in several files the last one counts."""
        read = Results()
        for file in files:
            found = json.loads(file.read_text())
            read.machine |= found["machine"]
            read.values |= found["values"]
        return read
