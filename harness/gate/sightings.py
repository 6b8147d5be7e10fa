"""Where failures were seen in earlier runs of one store, so that a gate knows which parts could show them again."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.output import write_text
from postcrash.reports.gate.fixed import place_of
from postcrash.reports.gate.run import Failure, Part, Place
from postcrash.reports.store.store import locked

FILE = "gate-seen.json"
_ids = TypeAdapter(dict[str, set[Place]])


class Sightings:
    """The places at which each cause and finding was seen, in a file of the store."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's. A file that cannot be read counts as empty: then nothing is said to be fixed."""
        self._folder = folder
        self._seen = self._read()

    def _read(self) -> dict[str, set[Place]]:
        try:
            return _ids.validate_json((self._folder / FILE).read_bytes())
        except (OSError, ValidationError):
            return {}

    def add(self, parts: Iterable[Part]) -> None:
        """Keep where the failures of these parts were seen. What other runs of the store have seen meanwhile stays.

        If a part asks something else than before, what it asks now counts. Raises InfrastructureError.
        """
        try:
            with locked(self._folder):
                self._seen = self._read()
                for part in parts:
                    for id in (id for failure in part.failures for id in _of(failure)):
                        self._add(id, place_of(part))
                write_text(str(self._folder / FILE), _ids.dump_json(self._seen).decode())
        except OSError as error:
            raise InfrastructureError(f"cannot lock {self._folder}: {error.strerror or error}") from error

    def _add(self, id: str, seen: Place) -> None:
        others = {place for place in self._seen.get(id, ()) if place._replace(asked=seen.asked) != seen}
        self._seen[id] = {*others, seen}

    def places(self, id: str) -> frozenset[Place]:
        """Where something of this id was ever seen."""
        return frozenset(self._seen.get(id, ()))


def _of(failure: Failure) -> set[str]:
    return {failure.cause, failure.finding, failure.found} - {""}
