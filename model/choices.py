"""File contents that a recovery leaves undecided, and the evaluation of functions over all of their versions.

If a file system does not check its data, one recovery stands for many crash states. Some ranges of a file are then
`UndecidedBytes`: one of the versions of a component of the crash interval, independent of the rest of the tree. A
question is a function of a tree that reads contents through `postcrash.model.content`. `every_answer` evaluates it once
for each combination of versions that makes a difference to it. A question about two blocks of twenty-five, with two
versions each, has at most four answers.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from postcrash.model.segments import Segments, clipped

T = TypeVar("T")
Cost = Callable[[int, int], int]
Answer = tuple[T, dict[int, int]]


class UndecidedBytes(NamedTuple):
    """The bytes from `start` up to `end` of a file. They are `versions[n]` if `component` has its version n."""

    start: int
    end: int
    component: int
    versions: tuple[Segments, ...]

    def within(self, start: int, end: int) -> "UndecidedBytes":
        """The part from `start` up to `end`."""
        versions = tuple(clipped(version, start, end) for version in self.versions)
        return UndecidedBytes(max(self.start, start), min(self.end, end), self.component, versions)


class UndecidedContentError(RuntimeError):
    """Contents that are not settled were looked at outside of `every_answer`."""


class _Fork(NamedTuple):
    """A place where the answers to a question part: groups of versions of one component, lowest first."""

    component: int
    groups: list[frozenset[int]]


class _Path:
    """One way through the forks of a question: the group to follow at each, the first where `followed` ends."""

    def __init__(self, followed: tuple[int, ...]) -> None:
        self.followed = followed
        self.forks: list[_Fork] = []
        self.alive: dict[int, frozenset[int]] = {}

    def branches(self, cost: Cost) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The ways that leave this one at one of its own forks, and how much more each costs."""
        for place in range(len(self.followed), len(self.forks)):
            component, groups = self.forks[place]
            least = cost(component, min(groups[0]))
            for number, group in enumerate(groups[1:], 1):
                followed = self.followed + (0,) * (place - len(self.followed)) + (number,)
                yield cost(component, min(group)) - least, followed

    def settle(self, choice: UndecidedBytes, aspect: Callable[[Segments], T]) -> T:
        """What `aspect` is of the choice on this way. Makes a fork if the versions still possible disagree."""
        alive = self.alive.get(choice.component, frozenset(range(len(choice.versions))))
        by_aspect: dict[T, set[int]] = {}
        for version in sorted(alive):
            by_aspect.setdefault(aspect(choice.versions[version]), set()).add(version)
        if len(by_aspect) > 1:
            alive = self._follow(choice.component, [frozenset(group) for group in by_aspect.values()])
        self.alive[choice.component] = alive
        return aspect(choice.versions[min(alive)])

    def _follow(self, component: int, groups: list[frozenset[int]]) -> frozenset[int]:
        place = len(self.forks)
        self.forks.append(_Fork(component, groups))
        return groups[self.followed[place] if place < len(self.followed) else 0]


_path: ContextVar[_Path | None] = ContextVar("path", default=None)


def settle(choice: UndecidedBytes, aspect: Callable[[Segments], T]) -> T:
    """What `aspect` (hashable) is of `choice`, within a question of `every_answer`."""
    path = _path.get()
    if path is None:
        raise UndecidedContentError(f"bytes {choice.start} to {choice.end} are not settled")
    return path.settle(choice, aspect)


def every_answer(question: Callable[[], T], cost: Cost = lambda _, version: version) -> Iterator[Answer[T]]:
    """Each answer to `question`, with the versions of components that lead to it and cost least.

    Answers come in the order of the total cost of their versions. `cost` is that of a version of a component; later
    versions never cost less. Components that are not named make no difference to the answer. A question without choices
    has one answer.
    """
    waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while waiting:
        spent, followed = heappop(waiting)
        path = _Path(followed)
        token = _path.set(path)
        try:
            answer = question()
        finally:
            _path.reset(token)
        yield answer, {component: min(alive) for component, alive in path.alive.items()}
        for more, branch in path.branches(cost):
            heappush(waiting, (spent + more, branch))
