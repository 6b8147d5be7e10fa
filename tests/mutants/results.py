"""What was measured of each kernel, kept in the cache, and the table made of it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from .mutant import Mutant
from .stages import COMPARISON, DEFAULT, MutantFinding, StageOutcome

SOON_S = 10.0
LATE_S = 120.0
COMMAND = "make mutants"
EARLIER = " \\*"
"""Marks rows of the table."""


@dataclass(frozen=True)
class Measurements:
    """The stages that were run on one kernel and target, in order. The last one has the finding, if there is one.

    change      digest of the change that makes the kernel another one than the stock kernel; empty for that one
    is_earlier  it was measured with earlier code of postcrash, or on a kernel built from other source
    """

    target: str
    outcomes: tuple[StageOutcome, ...]
    change: str = ""
    is_earlier: bool = False

    @property
    def found(self) -> MutantFinding | None:
        """What told the kernel from the stock kernel."""
        return self.outcomes[-1].found if self.outcomes else None

    @property
    def stage(self) -> str:
        """The stage in which it was found."""
        return self.outcomes[-1].stage

    @property
    def workloads(self) -> int:
        """Over all stages."""
        return sum(outcome.workloads for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        """Over all stages, with each hunt's start."""
        return sum(outcome.seconds for outcome in self.outcomes)

    @property
    def default_seconds(self) -> float | None:
        """How long the default hunt took to find it; None if it did not, or was not run."""
        found = (outcome.seconds for outcome in self.outcomes if outcome.stage == DEFAULT.name and outcome.found)
        return next(found, None)


class Results:
    """A folder with a file for each kernel and target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str, target: str, change: str, keys: Iterable[str]) -> Measurements:
        """What is known under `name` of stages with these keys, from the first one on: perhaps nothing."""
        outcomes = [_outcome(row) for row in self._kept(name).get("outcomes", ())]
        current = takewhile(lambda pair: pair[0].key == pair[1], zip(outcomes, keys, strict=False))
        return Measurements(target, tuple(outcome for outcome, _ in current), change)

    def earlier(self, name: str, target: str, change: str) -> Measurements:
        """What was measured last of the same change on the same target, with whatever code: perhaps nothing."""
        kept = self._kept(name)
        is_same = (kept.get("target"), kept.get("change")) == (target, change)
        outcomes = kept["outcomes"] if is_same else ()
        return Measurements(target, tuple(map(_outcome, outcomes)), change, is_earlier=True)

    def _kept(self, name: str) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads(self._place(name).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return kept

    def put(self, name: str, measured: Measurements) -> None:
        """Keep it in place of what was known."""
        self._folder.mkdir(parents=True, exist_ok=True)
        made = self._place(name).with_suffix(".new")
        made.write_text(json.dumps(asdict(measured), indent=1))
        made.rename(self._place(name))

    def _place(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _outcome(row: dict[str, Any]) -> StageOutcome:
    found = MutantFinding(**row["found"]) if row["found"] else None
    return StageOutcome(**{**row, "found": found, "groups": tuple(row["groups"])})


@dataclass(frozen=True)
class Row:
    """One mutant of the table, with what is measured of it so far."""

    mutant: Mutant
    measured: Measurements


def summary(rows: Sequence[Row], stages: int) -> str:
    """One line of counts. A mutant that was measured and not found is not found, also with stages left to run."""
    found = [row.measured for row in rows if row.measured.found]
    compared = sum(measured.stage == COMPARISON.name for measured in found)
    by_default = [seconds for measured in found if (seconds := measured.default_seconds) is not None]
    soon, late = (sum(seconds <= most for seconds in by_default) for most in (SOON_S, LATE_S))
    missed = [row for row in rows if _is_missed(row)]
    equivalent = sum(bool(row.mutant.equivalent) for row in missed)
    unfinished = sum(not _is_finished(row, stages) for row in missed)
    return (
        f"{len(rows)} mutants: {len(found)} found, {late} of them by the default hunt within {LATE_S:.0f} s, "
        f"{soon} within {SOON_S:.0f} s, and {compared} only by comparison; {len(missed)} not found, "
        f"{equivalent} of them equivalent at this level, {unfinished} of them with stages left to run; "
        f"{len(rows) - len(found) - len(missed)} not measured"
    )


def _is_missed(row: Row) -> bool:
    return bool(row.measured.outcomes) and not row.measured.found


def _is_finished(row: Row, stages: int) -> bool:
    return len(row.measured.outcomes) == stages


def markdown(rows: Sequence[Row], stock: Mapping[str, Measurements], kernel: str, stages: Sequence[str]) -> str:
    """docs/results/mutants.md. `stock` is by target."""
    parts = [_HEAD.format(command=COMMAND, kernel=kernel, stages=", ".join(f"`{name}`" for name in stages))]
    parts += [summary(rows, len(stages)) + ".", ""]
    if any(row.measured.is_earlier for row in rows):
        parts += ["\\* Measured with earlier code of postcrash.", ""]
    parts += [_table(rows, stages), ""]
    parts += ["## Not found", "", _missed(rows), ""]
    if any(measured.outcomes for measured in stock.values()):
        parts += ["## The stock kernel", "", _STOCK, "", _stock_table(stock), ""]
    return "\n".join(parts)


def compared_markdown(rows: Sequence[Row], rebuilt: Mapping[str, Measurements], kernel: str) -> str:
    """docs/results/mutants-compared.md: mutants and another build compared with the stock kernel, by target."""
    rows = [row for row in rows if row.measured.outcomes]
    shown = sum(row.measured.found is not None for row in rows)
    parts = [_COMPARED.format(command=COMMAND, kernel=kernel, shown=shown, compared=len(rows))]
    parts += [
        "| mutant | target | what the stock kernel never shows | workloads | s |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for row in rows:
        measured = row.measured
        told = (
            _change_of(measured.found)
            if measured.found
            else f"**nothing**: {row.mutant.unchanged or 'not explained yet.'}"
        )
        counts = f"{measured.workloads} | {measured.seconds:.0f}"
        parts.append(f"| {row.mutant.name} | {row.mutant.target} | {told} | {counts} |")
    parts += ["", _REBUILT, "", _stock_table(rebuilt), ""]
    return "\n".join(parts)


def _change_of(found: MutantFinding) -> str:
    """What the stock kernel never shows, in a cell of a table."""
    return found.message.removesuffix("; kernel:stock never shows this").replace("|", "\\|")


_HEAD = """# Mutants

Made by `{command}` ({kernel}), [as described](../../tests/README.md#mutants); stages in order: {stages}.
"""


_STOCK = "The same stages on the stock kernel of the same build; [findings](../findings/README.md) has the causes."


_COMPARED = """# Mutants compared with the stock kernel

Made by `{command} ARGS=--compare` ({kernel}), [as described](../../tests/README.md#mutants). Does a comparison show the
change? It does for {shown} of {compared}.
"""


_REBUILT = "Another build of the same source must show no change. It is hunted with `--ops 1` of `ace`:"


def _table(rows: Iterable[Row], stages: Sequence[str]) -> str:
    lines = [
        "| mutant | what no longer is true | target | default hunt, s | found at stage | by judge | workloads | s |",
        "| --- | --- | --- | ---: | --- | --- | ---: | ---: |",
    ]
    for row in rows:
        seconds = row.measured.default_seconds
        first = "–" if seconds is None else f"{seconds:.0f}"
        mark = EARLIER * row.measured.is_earlier
        what = f"{row.mutant.name}{mark} | {row.mutant.breaks} | {row.mutant.target}"
        lines.append(f"| {what} | {first} | {_came_to(row, stages)} |")
    return "\n".join(lines)


def _came_to(row: Row, stages: Sequence[str]) -> str:
    measured = row.measured
    if not measured.outcomes:
        return "not measured | – | – | –"
    counts = f"{measured.workloads} | {measured.seconds:.0f}"
    if measured.found:
        return f"{measured.stage} | {measured.found.checker} | {counts}"
    if not _is_finished(row, len(stages)):
        return f"not found by the end of {measured.stage} | – | {counts}"
    return f"{'equivalent' if row.mutant.equivalent else '**not found**'} | – | {counts}"


def _missed(rows: Iterable[Row]) -> str:
    lines = [
        f"- {row.mutant.name}: {row.mutant.equivalent or row.mutant.missed or 'not explained yet.'}"
        for row in rows
        if _is_missed(row)
    ]
    return "\n".join(lines) or "None."


def _stock_table(stock: Mapping[str, Measurements]) -> str:
    lines = ["| target | stage | workloads | s | verdict | found |", "| --- | --- | ---: | ---: | --- | --- |"]
    for target, measured in stock.items():
        for outcome in measured.outcomes:
            groups = "; ".join(dict.fromkeys(group.replace("|", "\\|") for group in outcome.groups))
            counts = f"{outcome.workloads} | {outcome.seconds:.0f}"
            lines.append(f"| {target} | {outcome.stage} | {counts} | {outcome.verdict} | {groups} |")
    return "\n".join(lines)
