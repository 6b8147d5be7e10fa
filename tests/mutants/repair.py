"""The repairs: changes of the kernel's source that mend findings of docs/findings.

A repair is evidence for a cause: with it, and with nothing else changed, the finding's command HOLDS. A kernel with all
repairs shows what stands behind the known findings.

They are in the same kernel as the mutants, and a bit in the kernel's data makes each (change.py). A repair is a row of
a TOML file in repairs/, or several rows of one name that are made together. The first says

    mends = "What is true instead, in one sentence."

and may name the pages that it mends, if these are not one page with its own name (`pages`). It may name repairs that
are made as well, before and after, because their finding hides this one (`beside`).
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .change import REPAIRS, REPAIRS_MAX, Change, ChosenChange, MutantError

TABLES = Path(__file__).with_name("repairs")
_OF_CHANGE = {"file", "function", "old", "new"}


@dataclass(frozen=True)
class Repair:
    """Changes that are made together, the names of the pages that they mend, and those of repairs `beside` them."""

    name: str
    mends: str
    pages: tuple[str, ...]
    changes: tuple[Change, ...]
    beside: tuple[str, ...] = ()


def load_repairs(folder: Path = TABLES) -> tuple[Repair, ...]:
    """The repairs of all tables in `folder`, sorted by file and place. Raises MutantError."""
    repairs = tuple(
        _repair(name, rows)
        for table in sorted(folder.glob("*.toml"))
        for name, rows in tomllib.loads(table.read_text()).items()
    )
    if len(repairs) > REPAIRS_MAX:
        raise MutantError(f"{len(repairs)} repairs: a kernel has {REPAIRS_MAX} bits for them")
    return repairs


def repair_changes(repairs: Sequence[Repair]) -> list[ChosenChange]:
    """Each change of each repair, with the repair's bit."""
    return [(change, f"{REPAIRS} >> {bit} & 1") for bit, repair in enumerate(repairs) for change in repair.changes]


def bits(repairs: Sequence[Repair], made: Iterable[Repair]) -> int:
    """The bits with which a kernel that has all `repairs` makes these."""
    return sum(1 << repairs.index(repair) for repair in made)


def _repair(name: str, rows: Any) -> Repair:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise MutantError(f"repair {name}: it is no array of tables")
    first, *others = rows
    told = {key: first[key] for key in ("mends", "pages", "beside") if key in first}
    changes = [{key: text for key, text in first.items() if key not in told}, *others]
    if "mends" not in told or any(change.keys() != _OF_CHANGE for change in changes):
        raise MutantError(f"repair {name}: its rows have {', '.join(sorted(_OF_CHANGE))}, and the first has mends")
    pages = tuple(told.get("pages", (name,)))
    made = tuple(Change(name, **change) for change in changes)
    return Repair(name, told["mends"], pages, changes=made, beside=tuple(told.get("beside", ())))
