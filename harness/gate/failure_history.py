"""Where failures were seen in earlier runs of one store, so that a gate knows which parts could show them again."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from postcrash.harness.files.store_file import KeptFile
from postcrash.reports.gate.fixed_lines import sighting_of
from postcrash.store.gate_run import Failure, Part, Sighting

FILE = "gate-seen.json"
_Seen = dict[str, set[Sighting]]
_ids = TypeAdapter(_Seen)


class Sightings:
    """The places at which each cause and finding was seen, in a file of the store."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's. If its file cannot be read, nothing is said to be fixed."""
        self._file = KeptFile(folder / FILE, _ids, _Seen)
        self._seen = self._file.read()

    def add(self, parts: Iterable[Part]) -> None:
        """Keep where the failures of these parts were seen. What other runs of the store have seen meanwhile stays.

        If a part asks something else than before, what it asks now counts. Raises InfrastructureError.
        """
        found = [(id, sighting_of(part)) for part in parts for failure in part.failures for id in _of(failure)]
        self._seen = self._file.change(lambda kept: _with(kept, found))

    def places(self, id: str) -> frozenset[Sighting]:
        """Where something of this id was ever seen."""
        return frozenset(self._seen.get(id, ()))


def _of(failure: Failure) -> set[str]:
    return {failure.cause, failure.finding, failure.found} - {""}


def _with(seen: _Seen, found: Iterable[tuple[str, Sighting]]) -> _Seen:
    for id, place in found:
        others = {each for each in seen.get(id, ()) if each._replace(asked=place.asked) != place}
        seen[id] = {*others, place}
    return seen
