"""Builds the mutants, hunts on each and writes docs/results/mutants.md: which judge finds it, and how soon.

With --compare it writes docs/results/mutants-compared.md instead: whether a hunt without any rule tells it from the
stock kernel.

What was built and hunted on before, with the same source, tool and stage, is not done again.
"""

import signal
import sys
import tempfile
from pathlib import Path

import click

from postcrash.harness.errors import HarnessError, InfrastructureError
from postcrash.harness.files.places import cache_folder
from postcrash.model import ExitCode
from postcrash.store.store import StoreError

from .change import MutantError, numbered
from .measure import COMPARED, STOCK, Measurer, MutantPages, put
from .mutant import chosen, load_mutants, mutant_changes
from .remedy import load_remedies, remedy_changes
from .source import SourceTree, require_packages, say


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="NAME", help="Only this mutant; can be repeated.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Compilers at a time.")
@click.option("--guests", type=click.IntRange(1, 256), help="Guests at a time; one a CPU by default.")
@click.option("--fresh", is_flag=True, help="Hunt again on what was hunted on before.")
@click.option("--stock/--no-stock", default=True, show_default=True, help="Hunt on the stock kernel too, to the end.")
@click.option("--compare", is_flag=True, help="Ask instead whether ext4's mutants differ from the stock kernel.")
@click.option(
    "--kernels",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Put the kernels there, for postcrash --kernel, and hunt on none.",
)
def main(
    only: tuple[str, ...],
    jobs: int,
    guests: int | None,
    fresh: bool,
    stock: bool,
    compare: bool,
    kernels: Path | None,
) -> None:
    """Build the mutants, hunt on each, and write docs/results/mutants.md or, with --compare, mutants-compared.md."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the hunt ends, too
    try:
        every = load_mutants()
        wanted = chosen(every, only)
        require_packages()
        folder = cache_folder() / "mutants"
        source = SourceTree(folder, jobs)
        changes = mutant_changes(every) + remedy_changes(load_remedies())
        built = source.kernel(changes)
        if kernels is not None:
            kernels.mkdir(parents=True, exist_ok=True)
            for number, name in [(0, STOCK), *((every.index(mutant) + 1, mutant.name) for mutant in wanted)]:
                put(kernels / name, numbered(built, number))
            return
        pages = MutantPages(every, folder, source.digest(), guests)
        with tempfile.TemporaryDirectory(prefix="kernels-", dir=folder) as place:
            measurer = Measurer(pages, Path(place), built, fresh=fresh)
            if compare:
                measurer.compare([mutant for mutant in wanted if only or mutant.subsystem in COMPARED], source, changes)
            else:
                measurer.hunt(wanted, stock=stock)
        if measurer.failed:
            raise InfrastructureError(f"not measured: {', '.join(measurer.failed)}; the same command tries again")
    except (MutantError, HarnessError, StoreError) as error:
        say(f"error: {error}")
        sys.exit(ExitCode.INFRASTRUCTURE)


if __name__ == "__main__":
    main()
