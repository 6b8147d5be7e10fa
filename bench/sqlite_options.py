"""Table 2 of HotDep'13 redone: how much faster SQLite is for each thing that it may expect of the disk.

SQLite 3.7.17, built from source as the catalogue does it, is given one expectation at a time. The insert benchmark puts
rows into six tables, each row in a transaction of its own. The update benchmark changes all rows of a table with 300
rows in each transaction. Both run on a new ext4 on a loop device, whose file is on the disk at hand. In each round all
expectations come by turns, and all figures are medians of the rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postcrash.apps import Building, application_named
from postcrash.harness.files.places import cache_folder
from side_by_side.disks import loop_device, make_ext4, mounted

APPLICATION = "sqlite-3.7.17"
TABLES, ROWS = 6, 300
Rates = tuple[float, float]
"""Transactions a second: of the insert benchmark, and of the update benchmark."""


@dataclass(frozen=True)
class Expectation:
    """A row of the table. `paper` has the paper's rates."""

    words: str
    option: str
    paper: Rates


DEFAULT = Expectation("default", "none", (10.25, 9.23))
EXPECTATIONS = (
    DEFAULT,
    Expectation("atomic writes", "atomic", (33.39, 32.62)),
    Expectation("safe append", "safe-append", (14.47, 12.62)),
    Expectation("sequential writes", "sequential", (33.88, 32.52)),
    Expectation("no powersafe overwrite", "no-powersafe-overwrite", (10.43, 10.33)),
    Expectation("no directory sync", "no-directory-sync", (11.24, 9.98)),
)


@dataclass(frozen=True)
class Shell:
    """SQLite's shell on a database in the folder."""

    program: Path
    folder: Path

    def run(self, option: str, statements: Iterator[str]) -> float:
        """The seconds that it takes to run them."""
        started = time.monotonic()
        subprocess.run(
            [self.program, "-batch", "-bail", "store.db"],
            input="\n".join(statements),
            text=True,
            cwd=self.folder,
            env={**os.environ, "SQLITE_OPTION": option},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return time.monotonic() - started

    def rates(self, option: str, transactions: int) -> Rates:
        """Both benchmarks, each with a new database and so many transactions."""
        self.run(option, tables())
        inserting = self.run(option, inserts(transactions))
        (self.folder / "store.db").unlink()
        self.run(option, tables())
        self.run(option, filled())
        updating = self.run(option, updates(transactions))
        (self.folder / "store.db").unlink()
        return transactions / inserting, transactions / updating


def tables() -> Iterator[str]:
    """The tables are made in one transaction."""
    yield "BEGIN;"
    yield from (f"CREATE TABLE t{number} (a INTEGER, b TEXT);" for number in range(TABLES))
    yield "COMMIT;"


def inserts(count: int) -> Iterator[str]:
    """So many rows, each in a transaction, into one table after the other."""
    return (f"INSERT INTO t{number % TABLES} VALUES ({number}, 'row {number}');" for number in range(count))


def filled() -> Iterator[str]:
    """The rows that are updated, in one transaction."""
    yield "BEGIN;"
    yield from inserts(TABLES * ROWS)
    yield "COMMIT;"


def updates(count: int) -> Iterator[str]:
    """So many transactions, each of which changes all rows of a table."""
    return (f"UPDATE t{number % TABLES} SET a = a + 1;" for number in range(count))


def measured(shell: Shell, rounds: int, transactions: int) -> dict[str, Rates]:
    """The rates by option. In each other round the expectations come in the opposite order."""
    found: dict[str, list[Rates]] = {each.option: [] for each in EXPECTATIONS}
    for number in range(rounds):
        for each in EXPECTATIONS[:: -1 if number % 2 else 1]:
            found[each.option].append(shell.rates(each.option, transactions))
            inserted, updated = found[each.option][-1]
            print(f"round {number + 1}, {each.words}: {inserted:.1f} inserts/s, {updated:.1f} updates/s", flush=True)
    return {option: _medians(rates) for option, rates in found.items()}


def _medians(rates: Sequence[Rates]) -> Rates:
    inserted, updated = (statistics.median(each) for each in zip(*rates, strict=True))
    return inserted, updated


def rows(found: Mapping[str, Rates]) -> Iterator[str]:
    """The table as Markdown: rates, and what each is of the default's, beside the paper's."""
    yield "| SQLite expects | inserts/s | ratio | in the paper | updates/s | ratio | in the paper |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for each in EXPECTATIONS:
        cells = [each.words]
        for kind in range(2):
            rate, paper = found[each.option][kind], each.paper[kind]
            cells += [f"{rate:.1f}", f"{rate / found[DEFAULT.option][kind]:.2f}", f"{paper / DEFAULT.paper[kind]:.2f}"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transactions", type=int, default=300, help="of each benchmark in each round")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the loop device's file is made")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench/sqlite_options.py: it makes and mounts a file system, which needs root: use sudo")
    building = Building(application_named(APPLICATION), cache_folder())
    building.make(print)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch, loop_device(Path(scratch)) as device:
        point = Path(scratch, "mnt")
        point.mkdir()
        make_ext4(device)
        with mounted(device, point, "defaults"):
            found = measured(Shell(building.place / "sqlite3", point), options.rounds, options.transactions)
    print(*rows(found), sep="\n")


if __name__ == "__main__":
    main()
