"""The cells of needs times gives that a store keeps, so that a table can be continued after an interruption."""

import hashlib
import json
import os
import shlex
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter

from postcrash.apps import Application
from postcrash.apps.needs import SearchLimits
from postcrash.harness.auditing.audit import workload_of
from postcrash.harness.auditing.judge import about
from postcrash.harness.examination.campaign import tool_digest
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.files.digest import content_digest
from postcrash.harness.files.store_file import KeptFile
from postcrash.store.table_rows import NeedsCell
from postcrash.targets import Target

CELLS = "needs.json"
"""The file in the store's folder."""


class KeptCells:
    """The cells in a store, by a digest of their inputs.

    The inputs include the programs and files that an application's commands name, but not what these read in turn.
    """

    def __init__(self, session: Session, how: Exploration, limits: SearchLimits) -> None:
        self._session, self._how, self._limits = session, how, limits

    @cached_property
    def _file(self) -> KeptFile[dict[str, NeedsCell]]:
        """Only needs on targets have cells, so only they open the store."""
        return KeptFile(Path(self._session.store.folder, CELLS), TypeAdapter(dict[str, NeedsCell]), dict)

    def cell(self, application: Application, target: Target) -> NeedsCell | None:
        """The kept cell of the same inputs; None if there is none. Raises HarnessError."""
        return self._file.read().get(self._key(application, target))

    def keep(self, application: Application, target: Target, cell: NeedsCell) -> None:
        """Keep a cell in place of an earlier one. Raises HarnessError."""
        self._file.change(_with(self._key(application, target), cell))

    def _key(self, application: Application, target: Target) -> str:
        session = self._session
        parts = (
            *(tool_digest(), session.kernel.label, session.guest()),
            *(target.digest(), session.base(target.with_inodes(application.inodes)).id),
            *(repr(self._how), repr(self._limits)),
            *(json.dumps(about(application)), workload_of(application).to_text()),
            *(f"{file} {content_digest(file)}" for file in files_named(application)),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def files_named(application: Application) -> list[Path]:
    """The application's programs, and the files that its commands name by their paths."""
    commands = (application.set_up, application.run, application.check, application.recover)
    words = (word for command in commands for word in _words(command))
    return sorted(
        {Path(word) for word in (*application.programs, *words) if os.path.isabs(word) and os.path.isfile(word)}
    )


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # the shell will say what is wrong with it
        return command.split()


def _with(key: str, cell: NeedsCell) -> Callable[[dict[str, NeedsCell]], dict[str, NeedsCell]]:
    return lambda cells: {**cells, key: cell}
