"""Contents that a recovery did not settle, and questions to them.

Where a file system does not check its data, one recovery stands for many crash states: what a file holds in some
places is then a `Choice` between the versions of a component of the crash interval, independent of the rest of the
tree. A question is a function of a tree that looks at contents through `postcrash.model.content`. `every_answer` asks
it once for each way in which the choices that it looks at make a difference, so a question about two blocks of
twenty-five has at most four answers.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from postcrash.model.segments import Segments, clipped

T = TypeVar("T")


class Choice(NamedTuple):
    """The bytes from `start` up to `end` of a file: one of `versions`, whichever version `component` has."""

    start: int
    end: int
    component: int
    versions: tuple[Segments, ...]

    def within(self, start: int, end: int) -> "Choice":
        """The part from `start` up to `end`."""
        versions = tuple(clipped(version, start, end) for version in self.versions)
        return Choice(max(self.start, start), min(self.end, end), self.component, versions)


class UndecidedContentError(RuntimeError):
    """Somebody looked at contents that are not settled, outside of `every_answer`."""


class _Fork:
    """A place where a question went on differently: groups of versions of one component, and the one being followed."""

    def __init__(self, component: int, groups: list[frozenset[int]]) -> None:
        self.component = component
        self.groups = groups
        self.followed = 0


class _Path:
    """One way through the forks of a question."""

    def __init__(self) -> None:
        self.forks: list[_Fork] = []
        self.position = 0
        self.alive: dict[int, frozenset[int]] = {}

    def restart(self) -> None:
        self.position = 0
        self.alive = {}

    def advance(self) -> bool:
        """Go on to the next way; False after the last."""
        while self.forks:
            self.forks[-1].followed += 1
            if self.forks[-1].followed < len(self.forks[-1].groups):
                return True
            self.forks.pop()
        return False

    def settle(self, choice: Choice, aspect: Callable[[Segments], T]) -> T:
        """What `aspect` is of the choice on this way. Forks where versions that are still possible disagree."""
        alive = self.alive.get(choice.component, frozenset(range(len(choice.versions))))
        by_aspect: dict[T, set[int]] = {}
        for version in sorted(alive):
            by_aspect.setdefault(aspect(choice.versions[version]), set()).add(version)
        if len(by_aspect) > 1:
            alive = self._follow(choice.component, [frozenset(group) for group in by_aspect.values()])
        self.alive[choice.component] = alive
        return aspect(choice.versions[min(alive)])

    def _follow(self, component: int, groups: list[frozenset[int]]) -> frozenset[int]:
        if self.position == len(self.forks):
            self.forks.append(_Fork(component, groups))
        fork = self.forks[self.position]
        self.position += 1
        return fork.groups[fork.followed]


_path: ContextVar[_Path | None] = ContextVar("path", default=None)


def settle(choice: Choice, aspect: Callable[[Segments], T]) -> T:
    """What `aspect` (hashable) is of `choice`, within a question of `every_answer`."""
    path = _path.get()
    if path is None:
        raise UndecidedContentError(f"bytes {choice.start} to {choice.end} are not settled")
    return path.settle(choice, aspect)


def every_answer(question: Callable[[], T]) -> Iterator[tuple[T, dict[int, int]]]:
    """Each answer to `question` with versions of components that lead to it: those that keep the most.

    Components that are not named make no difference to the answer. A question without choices has one answer.
    """
    path = _Path()
    while True:
        path.restart()
        token = _path.set(path)
        try:
            answer = question()
        finally:
            _path.reset(token)
        yield answer, {component: min(alive) for component, alive in path.alive.items()}
        if not path.advance():
            return
