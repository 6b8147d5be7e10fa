"""Which line of a gate's file an error is about, if it shows only when the file's names are looked up."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.gate.configuration import GateFile
from postcrash.model.places_in_toml import line_of
from postcrash.model.text import cut
from postcrash.model.validation import place_of

MESSAGE_MAX = 3000
"""An error can hold a name from the file. Beside it, it lists what there is."""


class Blame:
    """Adds the place in the gate's file `file` to errors."""

    def __init__(self, file: Path, gate: GateFile) -> None:
        self._file, self._gate = file, gate

    @contextmanager
    def setting(self, part: str, name: str) -> Iterator[None]:
        """Raise the body's usage errors with the place of the setting `name`, which `part` or the whole file has."""
        try:
            yield
        except (UsageError, NothingSelectedError) as error:
            place = self._place(part, name)
            line = line_of(self._file.read_text(encoding="utf-8"), place)
            raise UsageError(f"{self._file}:{line}: {place_of(place)}: {cut(str(error), MESSAGE_MAX)}") from error

    def _place(self, part: str, name: str) -> tuple[str, ...]:
        """Where the setting stands. If it stands nowhere, its place is in the part."""
        is_of_file = name in self._gate.model_fields_set and name not in self._gate.parts[part].model_fields_set
        return (name,) if is_of_file else ("parts", part, name)
