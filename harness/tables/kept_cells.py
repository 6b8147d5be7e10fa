"""The cells of needs times gives that a store keeps, so that a table can be continued after an interruption."""

import hashlib
import json
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
from postcrash.harness.files.kept_file import KeptFile
from postcrash.harness.session import Session
from postcrash.reports.tables.needs import NeedsCell
from postcrash.targets import Target

CELLS = "needs.json"
"""The file in the store's folder."""


class KeptCells:
    """The cells in a store, by what was asked for them. The files that a program reads are not among that."""

    def __init__(self, session: Session, how: Exploration, limits: SearchLimits) -> None:
        self._session, self._how, self._limits = session, how, limits

    @cached_property
    def _file(self) -> KeptFile[dict[str, NeedsCell]]:
        """Only needs on targets have cells, so only they open the store."""
        return KeptFile(Path(self._session.store.folder, CELLS), TypeAdapter(dict[str, NeedsCell]), dict)

    def cell(self, application: Application, target: Target) -> NeedsCell | None:
        """The cell that the same question came to, if it is kept. Raises HarnessError."""
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
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _with(key: str, cell: NeedsCell) -> Callable[[dict[str, NeedsCell]], dict[str, NeedsCell]]:
    return lambda cells: {**cells, key: cell}
