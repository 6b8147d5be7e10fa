"""Hunting through a list of workloads, such as those of properties or of a folder, instead of a space."""

from collections.abc import Iterator
from dataclasses import dataclass

from postcrash.harness.examination.plan import Plan
from postcrash.harness.hunting.first_looks import FirstLookHunt
from postcrash.model import Workload


@dataclass(frozen=True, slots=True)
class ListSelection:
    """Workloads as they are run, tails included, each on all `disks`. `Exploration.held` says what these are.

    With `one_look`, each is explored to the end at once.
    """

    workloads: tuple[Workload, ...]
    disks: tuple[int | None, ...] = (None,)
    one_look: bool = False

    @property
    def count(self) -> int:
        """How many workloads there are."""
        return len(self.workloads)


class ListHunt(FirstLookHunt[ListSelection]):
    """Hunts through the workloads of a list."""

    def _new_workloads(self) -> Iterator[tuple[int, Workload]]:
        for number, workload in enumerate(self._selection.workloads):
            if self._is_over:
                return
            self._reached += 1
            yield number, workload

    def _first_look(self, number: int, plan: Plan) -> Plan:
        return plan if self._selection.one_look else super()._first_look(number, plan)
