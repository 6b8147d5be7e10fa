"""The remedies: changes of the kernel's source that mend findings of docs/findings.

A remedy is evidence for a cause: with it, and with nothing else changed, the finding's command HOLDS. A kernel with all
remedies shows what stands behind the known findings.

They are in the same kernel as the mutants, and a bit in the kernel's data makes each (change.py). A remedy is a row of
a TOML file in remedies/, or several rows of one name that are made together. The first says

    mends = "What is true instead, in one sentence."

and may name the pages that it mends, if these are not one page with its own name (`pages`). It may name remedies that
are made as well, before and after, because their finding hides this one (`beside`).
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .change import REMEDIES, REMEDIES_MAX, Change, ChosenChange, MutantError

TABLES = Path(__file__).with_name("remedies")
_OF_CHANGE = {"file", "function", "old", "new"}


@dataclass(frozen=True)
class Remedy:
    """Changes that are made together, the names of the pages that they mend, and those of remedies `beside` them."""

    name: str
    mends: str
    pages: tuple[str, ...]
    changes: tuple[Change, ...]
    beside: tuple[str, ...] = ()


def load_remedies(folder: Path = TABLES) -> tuple[Remedy, ...]:
    """The remedies of all tables in `folder`, sorted by file and place. Raises MutantError."""
    remedies = tuple(
        _remedy(name, rows)
        for table in sorted(folder.glob("*.toml"))
        for name, rows in tomllib.loads(table.read_text()).items()
    )
    if len(remedies) > REMEDIES_MAX:
        raise MutantError(f"{len(remedies)} remedies: a kernel has {REMEDIES_MAX} bits for them")
    return remedies


def remedy_changes(remedies: Sequence[Remedy]) -> list[ChosenChange]:
    """Each change of each remedy, with the remedy's bit."""
    return [(change, f"{REMEDIES} >> {bit} & 1") for bit, remedy in enumerate(remedies) for change in remedy.changes]


def bits(remedies: Sequence[Remedy], made: Iterable[Remedy]) -> int:
    """The bits with which a kernel that has all `remedies` makes these."""
    return sum(1 << remedies.index(remedy) for remedy in made)


def _remedy(name: str, rows: Any) -> Remedy:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise MutantError(f"remedy {name}: it is no array of tables")
    first, *others = rows
    told = {key: first[key] for key in ("mends", "pages", "beside") if key in first}
    changes = [{key: text for key, text in first.items() if key not in told}, *others]
    if "mends" not in told or any(change.keys() != _OF_CHANGE for change in changes):
        raise MutantError(f"remedy {name}: its rows have {', '.join(sorted(_OF_CHANGE))}, and the first has mends")
    pages = tuple(told.get("pages", (name,)))
    made = tuple(Change(name, **change) for change in changes)
    return Remedy(name, told["mends"], pages, changes=made, beside=tuple(told.get("beside", ())))
