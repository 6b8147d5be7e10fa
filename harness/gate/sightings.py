"""Where failures were seen in earlier runs of one store, so that a gate knows which parts could show them again."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from postcrash.harness.output import write_text
from postcrash.reports.gate.fixed import place_of
from postcrash.reports.gate.run import Failure, Part, Place

FILE = "gate-seen.json"
_ids = TypeAdapter(dict[str, set[Place]])


class Sightings:
    """The places at which each cause and finding was seen, in a file of the store."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's. A file that cannot be read counts as empty: then nothing is said to be fixed."""
        self._file = folder / FILE
        try:
            self._seen = _ids.validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            self._seen = {}

    def add(self, parts: Iterable[Part]) -> None:
        """Keep where the failures of these parts were seen."""
        for part in parts:
            for id in (id for failure in part.failures for id in _of(failure)):
                self._seen.setdefault(id, set()).add(place_of(part))
        write_text(str(self._file), _ids.dump_json(self._seen).decode())

    def places(self, id: str) -> frozenset[Place]:
        """Where something of this id was ever seen."""
        return frozenset(self._seen.get(id, ()))


def _of(failure: Failure) -> set[str]:
    return {failure.cause, failure.finding, failure.found} - {""}
