"""The mutants: kernels of our own, each with a line (or a few) of its source changed so that crashes break it.

All are compiled into one kernel: each change stands beside what it replaces, and a number in the kernel's data says
which of them is made. So they cost one build, and the stock kernel to compare with is the same code with the number 0.

A mutant is a row of a TOML file here, one file for each part of the kernel. It is a change (change.py), with

    breaks = "What no longer is true, in one sentence."
    target = "ext4-current"

`equivalent` says why the mutant breaks no rule of the default level, at which it is hunted, `missed` why no hunt finds
it though one could, and `unchanged` why a hunt that compares it with the stock kernel sees nothing: a row has one only
where it is so.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from .change import NUMBER, Change, ChosenChange, MutantError

TABLES = Path(__file__).parent
_OPTIONAL = {"equivalent", "missed", "unchanged"}


@dataclass(frozen=True)
class Mutant(Change):
    """One row. `target` is the file system (with its options) on which its bug is hunted."""

    breaks: str
    target: str
    equivalent: str = ""
    missed: str = ""
    unchanged: str = ""


def load_mutants(folder: Path = TABLES) -> tuple[Mutant, ...]:
    """The rows of all tables in `folder`, sorted by file and place. Raises MutantError."""
    mutants: list[Mutant] = []
    for table in sorted(folder.glob("*.toml")):
        for name, row in tomllib.loads(table.read_text()).items():
            mutants.append(_mutant(name, row))
    names = [mutant.name for mutant in mutants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise MutantError(f"mutant {min(twice)} is in two tables")
    return tuple(mutants)


def mutant_changes(mutants: Sequence[Mutant]) -> list[ChosenChange]:
    """Each mutant with its number, the first being 1."""
    return [(mutant, f"{NUMBER} == {number}") for number, mutant in enumerate(mutants, 1)]


def chosen(mutants: Iterable[Mutant], names: Iterable[str]) -> tuple[Mutant, ...]:
    """Those of these names, all without any. Raises MutantError for a name that is not there."""
    rows = {mutant.name: mutant for mutant in mutants}
    wanted = tuple(names)
    if unknown := [name for name in wanted if name not in rows]:
        raise MutantError(f"there is no mutant {unknown[0]}; there are: {', '.join(rows)}")
    return tuple(rows[name] for name in wanted) or tuple(rows.values())


def _mutant(name: str, row: object) -> Mutant:
    known = {field.name for field in fields(Mutant)} - {"name"}
    if not isinstance(row, dict) or known - _OPTIONAL - row.keys() or row.keys() - known:
        raise MutantError(f"mutant {name}: a row has {', '.join(sorted(known - _OPTIONAL))}, and may say why not found")
    if wrong := [key for key, value in row.items() if not isinstance(value, str) or (not value and key != "new")]:
        raise MutantError(f"mutant {name}: {wrong[0]} is no text, or empty")
    return Mutant(name=name, **row)
