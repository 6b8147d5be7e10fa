"""Hunting through a list of workloads, such as those of properties or of a folder, instead of a space."""

from collections.abc import Iterator
from dataclasses import dataclass

from postcrash.harness.examination.campaign import Crew
from postcrash.harness.examination.plan import Plan
from postcrash.harness.hunting.hunt import Hunt, HuntProgress
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.model import Workload
from postcrash.reports.store.store import Store


@dataclass(frozen=True, slots=True)
class ListSelection:
    """Workloads as they are run, tails included, each on all `disks`. `Exploration.held` says what these are."""

    workloads: tuple[Workload, ...]
    disks: tuple[int | None, ...] = (None,)

    @property
    def count(self) -> int:
        """How many workloads there are."""
        return len(self.workloads)


def hunt_through(
    selection: ListSelection,
    plan: Plan,
    crew: Crew,
    store: Store,
    progress: HuntProgress,
    *,
    fresh: bool = False,
    until: float | None = None,
) -> HuntResult:
    """Hunt as `hunt` does, through the workloads of a list."""
    return _ListHunt(selection, plan, store, progress, fresh, until).run(crew)


class _ListHunt(Hunt[ListSelection]):
    _reached = 0

    def _not_run(self) -> int:
        return self._selection.count - self._reached + len(self._open)

    def _distinct(self) -> Iterator[tuple[int, Workload]]:
        for number, workload in enumerate(self._selection.workloads):
            if self._is_over:
                return
            self._reached += 1
            yield number, workload
