"""Records of earlier runs of gates in a store: the parts that lacked time, and the places of failures."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from postcrash.harness.files.store_file import KeptFile
from postcrash.harness.gate.planning import PlannedPart
from postcrash.store.gate_run import Failure, Part, Sighting

UNFINISHED_FILE = "gate-open.json"
SIGHTINGS_FILE = "gate-seen.json"
_UnfinishedKey = tuple[str, str, str, str]
"""Part, target, kernel as the gate's file names it, and device model. A kernel that is built anew keeps its name."""
_SightingsById = dict[str, set[Sighting]]


class UnfinishedParts:
    """The parts for which there was no time, in a file of the store. A later run begins with them."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's."""
        self._file = KeptFile(folder / UNFINISHED_FILE, TypeAdapter(set[_UnfinishedKey]), set)
        self._keys = self._file.read()

    def sort(self, planned: Iterable[PlannedPart]) -> list[PlannedPart]:
        """The parts, unfinished ones before the others."""
        return sorted(planned, key=lambda part: _unfinished_key(part) not in self._keys)

    def update(self, planned: Iterable[PlannedPart], parts: Iterable[Part]) -> None:
        """Keeps which of the `parts` that were run are unfinished. Entries of other parts stay.

        Raises InfrastructureError.
        """
        run = {_unfinished_key(plan): _is_unfinished(part) for plan, part in zip(planned, parts, strict=True)}
        self._keys = self._file.change(lambda kept: {key for key in kept | set(run) if run.get(key, True)})


def _unfinished_key(planned: PlannedPart) -> _UnfinishedKey:
    return planned.name, planned.target.name, planned.kernel_name, planned.how.model


def _is_unfinished(part: Part) -> bool:
    """Whether more time would tell more. An application is one workload, which is cut short instead of left out."""
    is_cut_short = part.kind == "application" and not all(failure.is_violated for failure in part.failures)
    return bool(part.unfinished) or is_cut_short


class Sightings:
    """The places at which each cause and finding was seen, in a file of the store."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's. If its file cannot be read, no line counts as fixed."""
        self._file = KeptFile(folder / SIGHTINGS_FILE, TypeAdapter(_SightingsById), _SightingsById)
        self._by_id = self._file.read()

    def add(self, parts: Sequence[Part]) -> None:
        """Adds where the failures of these parts were seen. What other runs of the store have added meanwhile stays.

        A part whose section has changed replaces its earlier sightings of these failures. Raises InfrastructureError.
        """
        self._by_id = self._file.change(lambda kept: _with_failures(kept, parts))

    def places(self, id: str) -> frozenset[Sighting]:
        """Where a failure with this id was ever seen."""
        return frozenset(self._by_id.get(id, ()))


def _with_failures(sightings: _SightingsById, parts: Sequence[Part]) -> _SightingsById:
    for part in parts:
        place = part.sighting
        for id in {id for failure in part.failures for id in _ids(failure)}:
            kept = sightings.get(id, ())
            others = {other for other in kept if other._replace(section_digest=part.section_digest) != place}
            sightings[id] = {*others, place}
    return sightings


def _ids(failure: Failure) -> set[str]:
    return {failure.cause, failure.finding, failure.found} - {""}
