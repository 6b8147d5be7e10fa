"""Hunting through a list of workloads, such as those of properties or of a folder, instead of a space."""

from collections.abc import Iterator
from dataclasses import dataclass

from postcrash.harness.hunting.hunt import Hunt
from postcrash.model import Workload


@dataclass(frozen=True, slots=True)
class ListSelection:
    """Workloads as they are run, tails included, each on all `disks`. `Exploration.held` says what these are."""

    workloads: tuple[Workload, ...]
    disks: tuple[int | None, ...] = (None,)

    @property
    def count(self) -> int:
        """How many workloads there are."""
        return len(self.workloads)


class ListHunt(Hunt[ListSelection]):
    """Hunts through the workloads of a list."""

    def _new_workloads(self) -> Iterator[tuple[int, Workload]]:
        for number, workload in enumerate(self._selection.workloads):
            if self._is_over:
                return
            self._reached += 1
            yield number, workload
