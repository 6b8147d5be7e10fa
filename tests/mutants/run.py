"""Builds the mutants, hunts on each and writes docs/mutants.md: which judge finds it, and how soon.

What was built and hunted on before, with the same source, tool and stages, is not done again.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from postcrash.harness.errors import HarnessError, InfrastructureError
from postcrash.harness.examination.campaign import tool_digest
from postcrash.harness.guests.kernel import uml_version
from postcrash.harness.places import cache_folder
from postcrash.model import ExitCode
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import StoreError

from .mutant import Mutant, MutantError, chosen, load_mutants, numbered
from .results import Measurements, Results, Row, markdown, summary
from .source import SourceTree, require_packages
from .stages import STAGE_LIMITS, STAGES, StockKernel, run_stage

STOCK = "stock"
TABLE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"


@dataclass(frozen=True)
class HuntedKernel:
    """A kernel and the target on which it is hunted: a mutant, or the stock kernel, whose number is 0."""

    name: str
    number: int
    change: str
    target: str


class MutantHunts:
    """What is measured of each kernel. `digest` names the source that they are made from."""

    def __init__(self, folder: Path, digest: str, guests: int | None) -> None:
        self._results = Results(folder / "results")
        self._stores = folder / "stores"
        self._digest = digest
        self._guests = guests

    def known(self, hunted: HuntedKernel) -> Measurements:
        """What was measured before, perhaps nothing."""
        key = self._key(hunted)
        return self._results.get(hunted.name, key) or Measurements(key, hunted.target, ())

    def forget(self, hunted: HuntedKernel) -> None:
        """Measure anew."""
        self._results.put(hunted.name, Measurements(self._key(hunted), hunted.target, ()))

    def step(self, hunted: HuntedKernel, index: int, kernel: Path, stock: StockKernel) -> Measurements | None:
        """Run this stage, unless it was run or is not needed. None if it was not run now."""
        known = self.known(hunted)
        if known.found or len(known.outcomes) != index:
            return None
        stage, store = STAGES[index], self._stores / hunted.name
        shutil.rmtree(store, ignore_errors=True)

        def counts(finding: Finding) -> bool:
            return hunted.number != 0 and not stock.shows(finding, hunted.target)

        outcome = run_stage(kernel, hunted.target, stage, store, self._guests, counts)
        measured = replace(known, outcomes=(*known.outcomes, outcome))
        self._results.put(hunted.name, measured)
        return measured

    def _key(self, hunted: HuntedKernel) -> str:
        """Digest of all that a result depends on."""
        parts = (self._digest, hunted.change, tool_digest(), hunted.target, repr((STAGES, STAGE_LIMITS)))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="NAME", help="Only this mutant; can be repeated.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Compilers at a time.")
@click.option("--guests", type=click.IntRange(1, 256), help="Guests at a time; one a CPU by default.")
@click.option("--fresh", is_flag=True, help="Hunt again on what was hunted on before.")
@click.option("--stock/--no-stock", default=True, show_default=True, help="Hunt on the stock kernel too, to the end.")
@click.option(
    "--kernels",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Put the kernels there, for postcrash --kernel, and hunt on none.",
)
def main(only: tuple[str, ...], jobs: int, guests: int | None, fresh: bool, stock: bool, kernels: Path | None) -> None:
    """Build the mutants, hunt on each, and write docs/mutants.md."""
    try:
        every = load_mutants()
        wanted = chosen(every, only)
        require_packages(_say)
        folder = cache_folder() / "mutants"
        source = SourceTree(folder, jobs, _say)
        built = source.kernel(every)
        if kernels is not None:
            kernels.mkdir(parents=True, exist_ok=True)
            for number, name in [(0, STOCK), *((every.index(mutant) + 1, mutant.name) for mutant in wanted)]:
                _put(kernels / name, numbered(built, number))
        else:
            run = MutantHunts(folder, source.digest(), guests)
            _hunt(every, [*map(every.index, wanted)], built=built, run=run, folder=folder, fresh=fresh, stock=stock)
    except (MutantError, HarnessError, StoreError) as error:
        _say(f"error: {error}")
        sys.exit(ExitCode.INFRASTRUCTURE)


def _hunt(
    every: Sequence[Mutant],
    wanted: Sequence[int],
    built: bytes,
    run: MutantHunts,
    folder: Path,
    fresh: bool,
    stock: bool,
) -> None:
    """Hunt on each, one stage after the other, so that what is found soon is known soon; the table grows as it goes.

    A hunt that fails, as on a machine that is too busy to boot a guest, is left for the next run.
    """
    failed: dict[str, InfrastructureError] = {}
    todo = [_mutant(every, index) for index in wanted]
    if stock:
        todo += [_stock(target) for target in dict.fromkeys(hunted.target for hunted in todo)]
    if fresh:
        for hunted in todo:
            run.forget(hunted)
    with tempfile.TemporaryDirectory(prefix="kernels-", dir=folder) as place:
        stock_kernel, kernel = Path(place, STOCK), Path(place, "mutant")
        _put(stock_kernel, numbered(built, 0))
        reference = StockKernel(stock_kernel, Path(place, "checks"))
        for index in range(len(STAGES)):
            for hunted in todo:
                _put(kernel, numbered(built, hunted.number))
                try:
                    measured = run.step(hunted, index, kernel, reference)
                except InfrastructureError as error:
                    failed[hunted.name] = error
                    _say(f"{hunted.name}: {error}")
                    continue
                if measured:
                    _say(_told(hunted, measured))
                    _write(every, run, f"UML {uml_version(stock_kernel)}")
    if failed:
        raise InfrastructureError(f"not measured: {', '.join(failed)}; the same command tries again")


def _mutant(every: Sequence[Mutant], index: int) -> HuntedKernel:
    mutant = every[index]
    return HuntedKernel(mutant.name, index + 1, mutant.digest(), mutant.target)


def _stock(target: str) -> HuntedKernel:
    return HuntedKernel(f"{STOCK}-{target}", 0, "", target)


def _put(place: Path, program: bytes) -> None:
    place.unlink(missing_ok=True)
    place.write_bytes(program)
    place.chmod(0o755)


def _told(hunted: HuntedKernel, measured: Measurements) -> str:
    last = measured.outcomes[-1]
    after = f"{hunted.name}, {hunted.target}, {last.stage}: {last.workloads} workloads, {last.seconds:.1f} s"
    if last.found:
        return f"{after}: FOUND by {last.found.checker}: {last.found.message}"
    return f"{after}: {last.verdict} {'; '.join(last.groups)}"


def _write(every: Sequence[Mutant], run: MutantHunts, version: str) -> None:
    """The table of all that is measured, whatever was asked for in this run."""
    rows = [Row(mutant, run.known(_mutant(every, index))) for index, mutant in enumerate(every)]
    stock = {target: run.known(_stock(target)) for target in dict.fromkeys(mutant.target for mutant in every)}
    TABLE.write_text(markdown(rows, stock, version, [stage.name for stage in STAGES]))
    _say(summary(rows, len(STAGES)))


if __name__ == "__main__":
    main()
