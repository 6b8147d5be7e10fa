"""Known findings of a corpus: which finding's page explains an objection.

A folder of workloads can have a file `known.toml`. Each table in this file is named after a page. The table says where
the finding of the page shows:

    [f2fs-first-fsync]
    page = "../../docs/findings/f2fs-first-fsync.md"
    targets = ["f2fs"]
    judges = ["durability"]
    workloads = ["generic-034", "generic-52*"]

All three lists must match the objection. Workloads may be patterns as in a shell. A known objection is still an
objection.
"""

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from postcrash.harness.errors import UsageError
from postcrash.model.validation import TomlError, first_objection, read_toml
from postcrash.store.records import Finding

FILE = "known.toml"


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class KnownObjections:
    """Objections that a page explains. `page` is its path."""

    page: str
    targets: tuple[str, ...]
    judges: tuple[str, ...]
    workloads: tuple[str, ...]

    def tells_of(self, finding: Finding) -> bool:
        """Whether the page is about the finding."""
        is_there = finding.target in self.targets and finding.checker in self.judges
        return is_there and any(fnmatch.fnmatchcase(finding.workload_name, pattern) for pattern in self.workloads)


_schema = TypeAdapter(dict[str, KnownObjections])


def load_known(folder: Path, seen_from: Path) -> tuple[KnownObjections, ...]:
    """The known objections of a folder, with pages as paths from the folder `seen_from`. Empty without such a file.

    Raises UsageError.
    """
    file = folder / FILE
    if not file.exists():
        return ()
    try:
        given = _schema.validate_python(read_toml(file))
    except TomlError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        raise UsageError(f"{file}: {first_objection(error)}") from error
    return tuple(replace(known, page=os.path.relpath(folder / known.page, seen_from)) for known in given.values())


def page_of(finding: Finding, known: Sequence[KnownObjections]) -> str:
    """The page that explains the finding; empty if none does."""
    return next((each.page for each in known if each.tells_of(finding)), "")
