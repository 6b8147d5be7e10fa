"""What is known already of a corpus: which finding's page tells of an objection.

A folder of workloads can have a file `known.toml`. Each table of it is named after a page, and says where what the page
tells of shows:

    [f2fs-first-fsync]
    page = "../../docs/findings/f2fs-first-fsync.md"
    targets = ["f2fs"]
    judges = ["durability"]
    workloads = ["generic-034", "generic-52*"]

All three lists must name the objection; workloads may be patterns as a shell has them. What is known is an objection
still.
"""

import fnmatch
import os
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from postcrash.harness.errors import UsageError
from postcrash.model.validation import first_objection
from postcrash.reports.store.records import Finding

FILE = "known.toml"


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class KnownObjections:
    """Objections that `page`, a path, tells of."""

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
    """What the folder's file says, with pages as paths from the folder `seen_from`; none if it has no such file.

    Raises UsageError.
    """
    file = folder / FILE
    try:
        given = _schema.validate_python(tomllib.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: {error}") from error
    except ValidationError as error:
        raise UsageError(f"{file}: {first_objection(error)}") from error
    return tuple(replace(known, page=os.path.relpath(folder / known.page, seen_from)) for known in given.values())


def page_of(finding: Finding, known: Sequence[KnownObjections]) -> str:
    """The page that tells of the finding; empty if none does."""
    return next((each.page for each in known if each.tells_of(finding)), "")
