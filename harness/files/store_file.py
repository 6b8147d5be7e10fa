"""A file of a store in which commands keep a value from one run to the next."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.output import write_text
from postcrash.store.store import locked

T = TypeVar("T")


class KeptFile(Generic[T]):
    """A JSON value of one type. A file that cannot be read counts as `empty`."""

    def __init__(self, file: Path, schema: TypeAdapter[T], empty: Callable[[], T]) -> None:
        self._file, self._schema, self._empty = file, schema, empty

    def read(self) -> T:
        """Returns the value."""
        try:
            return self._schema.validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return self._empty()

    def change(self, changed: Callable[[T], T]) -> T:
        """Replaces the value by `changed` of it and returns the new one. Other processes are locked out.

        Raises InfrastructureError.
        """
        folder = self._file.parent
        try:
            with locked(folder):
                now = changed(self.read())
                write_text(str(self._file), self._schema.dump_json(now).decode())
        except OSError as error:
            raise InfrastructureError(f"cannot lock {folder}: {error.strerror or error}") from error
        return now
