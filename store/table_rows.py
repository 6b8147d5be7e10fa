"""What the harness hands to the tables of reports, besides the cells of the property table: rows, cells and columns."""

from dataclasses import dataclass
from functools import cached_property

from postcrash.model import Verdict
from postcrash.model.numbers import counted, grouped
from postcrash.store.records import Cell

NOT_THERE = "–"
"""Stands in place of a verdict if the target or the kernel lacks something that is needed."""
SHORTER_MARK = "ˡ"
"""Marks an undecided workload that holds without `checkpoint` at its end."""


@dataclass(frozen=True)
class Column:
    """The cells of the kernel that the user called `name`, and what was done for them. No workload counts twice.

    If this name stands for several kernels, a cell says which of them it is from.
    """

    name: str
    cells: tuple[Cell, ...]
    workloads: int
    states: int
    recoveries: int

    @cached_property
    def by_place(self) -> dict[tuple[str, str], Cell]:
        """By target and property."""
        return {(cell.target, cell.property): cell for cell in self.cells}

    @property
    def served(self) -> dict[str, tuple[str, ...]]:
        """The targets that each kernel ran, by the kernel's label."""
        targets: dict[str, dict[str, None]] = {}
        for cell in self.cells:
            if cell.workloads:
                targets.setdefault(cell.kernel, {})[cell.target] = None
        return {kernel: tuple(names) for kernel, names in targets.items()}

    @property
    def kernels(self) -> str:
        """For example `UML 6.1.176; QEMU/TCG 6.1.0-50-amd64 for jfs, ntfs3`."""
        served = sorted(self.served.items(), key=lambda item: -len(item[1]))
        return "; ".join(
            [kernel for kernel, _ in served[:1]]
            + [f"{kernel} for {', '.join(targets)}" for kernel, targets in served[1:]]
        )

    @property
    def total(self) -> str:
        """What all verdicts of the column cover together."""
        return (
            f"{self.name} ({self.kernels or 'no target'}): {grouped(self.workloads)} workloads, "
            f"{counted(self.states)} crash states covered with {grouped(self.recoveries)} recoveries"
        )


@dataclass(frozen=True, slots=True)
class CorpusObjection:
    """What one judge objects to, with the finding that shows it, what this breaks, and the page that describes it.

    `is_expected`: a document promises, or practice expects, that this does not happen. `page` is empty if what was
    found is not known.
    """

    judge: str
    message: str
    finding: str
    meaning: str
    is_expected: bool
    page: str


@dataclass(frozen=True, slots=True)
class Result:
    """One workload on one target and kernel, on all the disks on which it was run.

    absent         why it could not be run there, if the file system or the kernel lacks something; else empty
    reason         why it is undecided; else empty
    objections     of the judges that say VIOLATED
    shorter_holds  it is undecided with `checkpoint` at its end, and holds without it
    """

    workload: str
    target: str
    verdict: Verdict
    absent: str = ""
    reason: str = ""
    objections: tuple[CorpusObjection, ...] = ()
    states: int = 0
    recoveries: int = 0
    shorter_holds: bool = False

    @property
    def symbol(self) -> str:
        """One character, and a mark."""
        return NOT_THERE if self.absent else self.verdict.symbol + SHORTER_MARK * self.shorter_holds

    @property
    def is_open(self) -> bool:
        """Whether it could be run, and nothing was found, but it does not hold."""
        return self.verdict is Verdict.UNDECIDED and not self.absent and not self.objections


@dataclass(frozen=True)
class CorpusColumn:
    """The results on the kernels that the user called `name`. `kernels` are the kernels' own names."""

    name: str
    kernels: tuple[str, ...]
    results: tuple[Result, ...]

    @cached_property
    def by_place(self) -> dict[tuple[str, str], Result]:
        """By workload and target."""
        return {(result.workload, result.target): result for result in self.results}

    @property
    def total(self) -> str:
        """What all verdicts of the column cover together."""
        run = [result for result in self.results if not result.absent]
        counts = f"{counted(sum(r.states for r in run))} crash states covered with"
        recoveries = grouped(sum(result.recoveries for result in run))
        return f"{self.name} ({'; '.join(self.kernels)}): {grouped(len(run))} runs, {counts} {recoveries} recoveries"


@dataclass(frozen=True, slots=True)
class NeedsRow:
    """What an application needs: sets of properties, the weakest first, of which each is enough.

    calls, changes  of its run; `folders`: so many were judged
    """

    application: str
    sets: tuple[str, ...]
    is_complete: bool
    calls: int
    changes: int
    folders: int


@dataclass(frozen=True, slots=True)
class NeedsCell:
    """An application on a target.

    real      what its crash states came to on the real file system
    modelled  whether the properties that the target has make the application safe: HOLDS if all folders that they
              allow are fine, UNDECIDED if only some were looked at, or the target breaks what documents promise
    because   what goes wrong, or why nobody knows
    lacking   properties that the target lacks and that would prevent it
    states, recoveries  of the real file system; `folders`: of the model
    finding   id of the real witness; empty if there is none
    """

    application: str
    target: str
    real: Verdict
    modelled: Verdict
    because: str
    lacking: tuple[str, ...]
    states: int
    recoveries: int
    folders: int
    finding: str

    @property
    def symbol(self) -> str:
        """As the table has it."""
        if self.real is Verdict.HOLDS and self.modelled is not Verdict.HOLDS:
            return "~" if self.modelled is Verdict.UNDECIDED else "(✗)"
        return self.real.symbol
