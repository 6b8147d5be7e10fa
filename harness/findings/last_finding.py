"""What `last` stands for where a command takes the id of a finding.

It is the finding that the last command which looked for findings in this store named first: `check`, `hunt`, `gate` and
the others, `minimize` with the smallest workload, and each command that takes a bundle. If that command found nothing,
or failed, `last` stands for nothing, so that nobody takes an old finding for an answer to a new question.
"""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from postcrash.harness.files.store_file import KeptFile
from postcrash.store.store import NotInStoreError, Store

LAST = "last"
FILE = "last-finding.json"
_schema: TypeAdapter[str | None] = TypeAdapter(str | None)


def keep_last(store: Store, ids: Iterable[str]) -> None:
    """Keep what `last` stands for from now on: the first of the findings that a command names, in their order.

    Raises InfrastructureError.
    """
    found = next(iter(ids), "")
    _file(store.folder).change(lambda _: found)


def forget_last(folder: Path) -> None:
    """Have `last` stand for nothing in the store `folder`. Raises InfrastructureError."""
    if (folder / FILE).is_file():
        _file(folder).change(lambda _: "")


def id_named(store: Store, name: str) -> str:
    """The id that `last` stands for; any other name as it is. Raises NotInStoreError if `last` stands for nothing."""
    if name != LAST:
        return name
    found = _file(store.folder).read()
    if found is None:
        raise NotInStoreError(f"{store.folder}: no command has looked for findings here: there is no last one")
    if not found:
        raise NotInStoreError(f"{store.folder}: the last command found nothing: name the id of an earlier finding")
    return found


def _file(folder: Path) -> KeptFile[str | None]:
    return KeptFile(folder / FILE, _schema, lambda: None)
