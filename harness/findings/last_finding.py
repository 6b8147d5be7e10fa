"""Resolves `last` in place of a finding's id.

It is the first finding that was printed by the last command that looked for findings in this store, such as `check`,
`hunt` and `gate`, by `minimize`, or by a command that read a bundle. If that command failed or found nothing, `last`
is undefined, so that an old finding is not taken for a new result.
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
    """Makes `last` the first of the findings that a command prints.

    Raises InfrastructureError.
    """
    found = next(iter(ids), "")
    _file(store.folder).change(lambda _: found)


def forget_last(folder: Path) -> None:
    """Makes `last` undefined in the store `folder`. Raises InfrastructureError."""
    if (folder / FILE).is_file():
        _file(folder).change(lambda _: "")


def id_named(store: Store, name: str) -> str:
    """Returns the id of `last`, and any other name as it is. Raises NotInStoreError if `last` is undefined."""
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
