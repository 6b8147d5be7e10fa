"""Runs the stages on kernels, keeps what they come to, and writes the pages of docs/ that show it."""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.campaign import tool_digest
from postcrash.harness.guests.kernels.kernel import uml_version
from postcrash.store.records import Finding

from .change import ChosenChange, numbered
from .mutant import Mutant
from .results import Measurements, Results, Row, compared_markdown, markdown, summary
from .source import SourceTree, say
from .stages import COMPARISON, REBUILT, STAGES, Stage, StockKernel, Trial, recoveries_of, run_stage

STOCK = "stock"
OTHER_BUILD = "rebuilt"
COMPARED_NAME = "-compared"
COMPARED = ("ext4", "jbd2")
"""The parts of the kernel whose mutants are compared."""
REBUILT_ON = ("ext4-current", "btrfs", "xfs", "f2fs", "ext3-ordered")
DOCS = Path(__file__).resolve().parents[2] / "docs/results"


@dataclass(frozen=True)
class HuntedKernel:
    """A kernel and the target on which it is hunted: a mutant, or the stock kernel, whose number is 0."""

    name: str
    number: int
    change: str
    target: str


Criterion = Callable[[HuntedKernel, Stage, Finding], bool]
"""Whether a finding on a kernel, made by a stage, counts."""


def never(hunted: HuntedKernel, stage: Stage, finding: Finding) -> bool:
    """Nothing counts: the stage is run to its end."""
    return False


def always(hunted: HuntedKernel, stage: Stage, finding: Finding) -> bool:
    """The first finding counts."""
    return True


class MutantHunts:
    """What `stages` come to on each kernel. `digest` names the source that kernels are made from."""

    def __init__(self, folder: Path, stages: tuple[Stage, ...], digest: str, guests: int | None) -> None:
        self._results = Results(folder / "results")
        self._stores = folder / "stores"
        self.stages = stages
        self._digest = digest
        self._guests = guests

    def known(self, hunted: HuntedKernel) -> Measurements:
        """What was measured before, perhaps nothing."""
        keys = (self._key(hunted, stage) for stage in self.stages)
        return self._results.get(hunted.name, hunted.target, hunted.change, keys)

    def latest(self, hunted: HuntedKernel) -> Measurements:
        """What was measured before. If nothing was with this code, what was measured with earlier code."""
        known = self.known(hunted)
        return known if known.outcomes else self._results.earlier(hunted.name, hunted.target, hunted.change)

    def forget(self, hunted: HuntedKernel) -> None:
        """Measure anew."""
        self._results.put(hunted.name, Measurements(hunted.target, (), hunted.change))

    def step(
        self, hunted: HuntedKernel, index: int, kernel: Path, stock: Path, counts: Callable[[Finding], bool]
    ) -> Measurements | None:
        """Run this stage, unless it was run or is not needed. None if it was not run now."""
        known = self.known(hunted)
        if known.found or len(known.outcomes) != index:
            return None
        stage, store = self.stages[index], self._stores / hunted.name
        shutil.rmtree(store, ignore_errors=True)
        key = self._key(hunted, stage)
        outcome = run_stage(
            Trial(stage, kernel, hunted.target, folder=store, stock=stock, key=key, guests=self._guests), counts
        )
        measured = replace(known, outcomes=(*known.outcomes, outcome))
        self._results.put(hunted.name, measured)
        return measured

    def _key(self, hunted: HuntedKernel, stage: Stage) -> str:
        """Digest of all that an outcome depends on."""
        parts = (self._digest, hunted.change, tool_digest(), hunted.target, repr(stage))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class MutantPages:
    """All that is measured so far, whatever is asked for in this run, and the pages made of it."""

    def __init__(self, every: Sequence[Mutant], folder: Path, digest: str, guests: int | None) -> None:
        self.every = every
        self.hunts = MutantHunts(folder, STAGES, digest, guests)
        self.comparisons = MutantHunts(folder, (COMPARISON,), digest, guests)
        self.rebuilds = MutantHunts(folder, (REBUILT,), digest, guests)

    def mutant(self, mutant: Mutant, suffix: str = "") -> HuntedKernel:
        """The kernel of a mutant; its results are kept under its name with the suffix."""
        return HuntedKernel(mutant.name + suffix, self.every.index(mutant) + 1, mutant.digest(), mutant.target)

    def write(self, version: str) -> None:
        """Write docs/results/mutants.md."""
        rows = [Row(mutant, self.hunts.latest(self.mutant(mutant))) for mutant in self.every]
        targets = dict.fromkeys(mutant.target for mutant in self.every)
        stock = {target: self.hunts.known(_unchanged(STOCK, target)) for target in targets}
        (DOCS / "mutants.md").write_text(markdown(rows, stock, version, [stage.name for stage in STAGES]))
        say(summary(rows, len(STAGES)))

    def write_compared(self, version: str) -> None:
        """Write docs/results/mutants-compared.md."""
        rows = [Row(mutant, self.comparisons.known(self.mutant(mutant, COMPARED_NAME))) for mutant in self.every]
        rebuilt = {target: self.rebuilds.known(_unchanged(OTHER_BUILD, target)) for target in REBUILT_ON}
        (DOCS / "mutants-compared.md").write_text(compared_markdown(rows, rebuilt, version))


class Measurer:
    """Runs stages on kernels, whose files it puts in `place`; `built` is the stock kernel's.

    A run that fails, as on a machine that is too busy to boot a guest, is left for the next time: `failed`.
    """

    def __init__(self, pages: MutantPages, place: Path, built: bytes, *, fresh: bool) -> None:
        self._pages, self._place, self._built, self._fresh = pages, place, built, fresh
        self._stock = place / STOCK
        self.failed: dict[str, InfrastructureError] = {}
        put(self._stock, numbered(built, 0))

    def hunt(self, wanted: Sequence[Mutant], *, stock: bool) -> None:
        """Hunt on each, one stage after the other, so that what is found soon is known soon."""
        todo = [self._pages.mutant(mutant) for mutant in wanted]
        if stock:
            todo += [_unchanged(STOCK, target) for target in dict.fromkeys(hunted.target for hunted in todo)]
        reference = StockKernel(self._stock, self._place / "checks")

        def counts(hunted: HuntedKernel, stage: Stage, finding: Finding) -> bool:
            return hunted.number != 0 and not reference.shows(finding, hunted.target, recoveries_of(stage, finding))

        self._run(todo, self._pages.hunts, self._built, counts, self._pages.write)

    def compare(self, wanted: Sequence[Mutant], source: SourceTree, changes: Sequence[ChosenChange]) -> None:
        """Compare each, and then another build of the same source, with the stock kernel."""
        todo = [self._pages.mutant(mutant, COMPARED_NAME) for mutant in wanted]
        write = self._pages.write_compared
        self._run(todo, self._pages.comparisons, self._built, always, write)
        rebuilt = source.kernel(changes, version="2")
        if rebuilt == self._built:
            raise InfrastructureError("the other build of the same source is the same file")
        unchanged = [_unchanged(OTHER_BUILD, target) for target in REBUILT_ON]
        self._run(unchanged, self._pages.rebuilds, rebuilt, never, write)

    def _run(
        self,
        todo: Sequence[HuntedKernel],
        hunts: MutantHunts,
        built: bytes,
        counts: Criterion,
        write: Callable[[str], None],
    ) -> None:
        kernel = self._place / "kernel"
        if self._fresh:
            for hunted in todo:
                hunts.forget(hunted)
        for index, stage in enumerate(hunts.stages):
            for hunted in todo:
                put(kernel, numbered(built, hunted.number))
                try:
                    measured = hunts.step(hunted, index, kernel, self._stock, partial(counts, hunted, stage))
                except InfrastructureError as error:
                    self.failed[hunted.name] = error
                    say(f"{hunted.name}: {error}")
                    continue
                if measured:
                    say(_told(hunted, measured))
                    write(f"UML {uml_version(self._stock)}")


def _unchanged(name: str, target: str) -> HuntedKernel:
    """The kernel of which the number is 0."""
    return HuntedKernel(f"{name}-{target}", 0, "", target)


def put(place: Path, program: bytes) -> None:
    """Write a kernel's file."""
    place.unlink(missing_ok=True)
    place.write_bytes(program)
    place.chmod(0o755)


def _told(hunted: HuntedKernel, measured: Measurements) -> str:
    last = measured.outcomes[-1]
    after = f"{hunted.name}, {hunted.target}, {last.stage}: {last.workloads} workloads, {last.seconds:.1f} s"
    if last.found:
        return f"{after}: FOUND by {last.found.checker}: {last.found.message}"
    return f"{after}: {last.verdict} {'; '.join(last.groups)}"
