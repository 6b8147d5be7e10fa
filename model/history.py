"""What an application knew of its workload at the instant of a crash."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

from postcrash.model.operation import Operation
from postcrash.model.simulate import simulate
from postcrash.model.tree import Tree
from postcrash.model.workload import Workload


@dataclass(frozen=True)
class History:
    """How many of `workload.operations` (set-up included) had been started, and how many had returned.

    Operations run one after the other, so at most one is in progress. Raises `ValueError` for impossible numbers.
    """

    workload: Workload
    started: int
    returned: int

    def __post_init__(self) -> None:
        if not 0 <= self.returned <= self.started <= min(self.returned + 1, len(self.workload.operations)):
            count = len(self.workload.operations)
            raise ValueError(f"started={self.started}, returned={self.returned} of {count} operations cannot be")

    @property
    def in_progress(self) -> Operation | None:
        """The operation that had started but not returned."""
        return self.workload.operations[self.returned] if self.started > self.returned else None

    @property
    def returned_operations(self) -> tuple[Operation, ...]:
        """The operations that had returned, in order."""
        return self.workload.operations[: self.returned]

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """`simulate(workload)`: the tree after the first k operations at index k. Raises `SimulationError`."""
        return trees_of(self.workload)

    def possible_trees(self, since: int) -> tuple[Tree, ...]:
        """The trees from the one after `since` operations to the one after all that had started.

        A file system that keeps operations whole and in order shows one of these, if the first `since` are durable.
        Raises `ValueError` unless 0 <= since <= started.
        """
        if not 0 <= since <= self.started:
            raise ValueError(f"since={since}, but {self.started} operations had started")
        return self.trees[since : self.started + 1]


@lru_cache(maxsize=256)
def trees_of(workload: Workload) -> tuple[Tree, ...]:
    """`simulate(workload)`, which is kept. Raises `SimulationError`."""
    return tuple(simulate(workload))
