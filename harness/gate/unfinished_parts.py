"""Which parts of gates the runs of one store left open, so that a later run begins with them."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from postcrash.harness.files.store_file import KeptFile
from postcrash.harness.gate.planning import PlannedPart
from postcrash.store.gate_run import Part

FILE = "gate-open.json"
_Key = tuple[str, str, str, str]
"""Part, target, kernel as the gate's file names it, and device model. A kernel that is built anew keeps its name."""
_keys = TypeAdapter(set[_Key])


class LeftOpen:
    """The parts for which there was no time, in a file of the store."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's."""
        self._file = KeptFile(folder / FILE, _keys, set)
        self._open = self._file.read()

    def first(self, planned: Iterable[PlannedPart]) -> list[PlannedPart]:
        """The parts, with those that were left open before the others."""
        return sorted(planned, key=lambda each: _key(each) not in self._open)

    def add(self, planned: Iterable[PlannedPart], parts: Iterable[Part]) -> None:
        """Keep which of the parts that were run were left open. What other runs of the store know of others stays.

        Raises InfrastructureError.
        """
        run = {_key(each): _is_open(part) for each, part in zip(planned, parts, strict=True)}
        self._open = self._file.change(lambda kept: {key for key in kept | set(run) if run.get(key, True)})


def _key(planned: PlannedPart) -> _Key:
    return planned.name, planned.target.name, planned.kernel_name, planned.how.model


def _is_open(part: Part) -> bool:
    """Whether more time would tell more. An application is one workload, which is cut short instead of left out."""
    is_cut_short = part.kind == "application" and not all(failure.is_violated for failure in part.failures)
    return bool(part.unfinished) or is_cut_short
