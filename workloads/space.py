"""The workloads of a grammar with so many calls, numbered: any of them can be made without making the others."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product

from postcrash.model import Workload
from postcrash.workloads.grammar import Call, Grammar, Setup
from postcrash.workloads.prerequisites import runnable_workload

LENGTH_MAX = 3


class WorkloadSpace:
    """The workloads of `grammar` with `length` calls and one of `setups`, from 0 to `len(space) - 1`.

    Sequences of calls come in the order of the grammar; for each, the points after its calls, the last changing first;
    for these, the set-ups. Raises `ValueError` unless 1 <= length <= LENGTH_MAX.
    """

    def __init__(self, grammar: Grammar, length: int, setups: Sequence[Setup] = ("new",)) -> None:
        if not 1 <= length <= LENGTH_MAX:
            raise ValueError(f"{length} operations: there are workloads of 1 to {LENGTH_MAX}")
        self.grammar, self.length, self.setups = grammar, length, setups
        self._calls = grammar.calls()

    @cached_property
    def _ends(self) -> "array[int]":
        """For each sequence of calls that belong together or not: how many workloads there are up to its last."""
        ends, total = array("Q"), 0
        counts: dict[frozenset[str], int] = {}
        for calls in product(self._calls, repeat=self.length):
            if self.grammar.reuse(calls):
                used = _used(calls)
                if used not in counts:
                    between, last = self._points(used)
                    counts[used] = len(between) ** (self.length - 1) * len(last)
                total += counts[used]
            ends.append(total)
        return ends

    def _points(self, used: frozenset[str]) -> tuple[tuple[Call, ...], tuple[Call, ...]]:
        """What may follow a call, and what may follow the last one."""
        after = self.grammar.points_after
        return after(used, self.length, last=False), after(used, self.length, last=True)

    def __len__(self) -> int:
        return self._ends[-1] * len(self.setups)

    def __iter__(self) -> Iterator[Workload]:
        return (self[number] for number in range(len(self)))

    def calls(self, number: int) -> tuple[Call, ...]:
        """The calls of a workload with the points after them. Raises `IndexError`."""
        if not 0 <= number < len(self):
            raise IndexError(f"{number}: there are {len(self)} workloads")
        number //= len(self.setups)
        position = bisect_right(self._ends, number)
        rest = number - (self._ends[position - 1] if position else 0)
        calls = []
        for _ in range(self.length):
            position, index = divmod(position, len(self._calls))
            calls.append(self._calls[index])
        calls.reverse()
        between, last = self._points(_used(tuple(calls)))
        points = []
        for choices in (last, *[between] * (self.length - 1)):
            rest, index = divmod(rest, len(choices))
            points.append(choices[index])
        points.reverse()
        return tuple(self._joined(calls, points))

    def _joined(self, calls: list[Call], points: list[Call]) -> Iterator[Call]:
        for call, point in zip(calls, points, strict=True):
            yield call
            if point.word and call.word not in self.grammar.durable:
                yield point

    def whole(self, number: int) -> Workload:
        """The workload with the tail of its grammar, as it is run."""
        return self[number].with_tail(checkpoint=self.grammar.checkpoint)

    def __getitem__(self, number: int) -> Workload:
        """The workload with this number; its name is that of the grammar, the length, the number and the set-up.

        Workloads that differ in their set-up only have one number in their names.
        """
        calls, setup = self.calls(number), self.setups[number % len(self.setups)]
        shown = f"{number // len(self.setups):0{len(str(self._ends[-1] - 1))}}"
        name = f"{self.grammar.name}-{self.length}-{shown}" + ("" if setup == "new" else f"-{setup}")
        return runnable_workload(name, calls, self.grammar, setup)


def _used(calls: tuple[Call, ...]) -> frozenset[str]:
    return frozenset(path for call in calls for path in call.paths)
