"""The weakest sets of properties under which an application keeps its promises.

A set is enough if the application's check succeeds on every folder that a crash can leave under it. A folder on which
the check fails shows that at least one of the properties that do not allow it is needed. So the sets are the hitting
sets of what is known to fail. Each one is tried until nothing fails under it: then it is enough, and without any of its
properties it is not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import z3

from postcrash.apps.needs.assumptions import ASSUMPTIONS, Implication, implications_of, implications_with
from postcrash.apps.needs.space import Judge, Moment, Properties, Space, Strengths, moments
from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import Protocol

_LEVELS = (0, 1, 2, None)
"""First come the states without a lost change, then those with one, and so on. None stands for all states."""
_BATCH = 16


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What a search may cost.

    folders  that are judged for one set of properties
    sets     that are looked for
    """

    folders: int = 2000
    sets: int = 6


@dataclass(frozen=True, slots=True)
class BadFolder:
    """A folder on which the check fails.

    message  what the check said
    broken   the properties that do not allow the folder; empty: a file system with all of them can leave it
    """

    moment: Moment
    state: State
    message: str
    broken: frozenset[str]


@dataclass(frozen=True, slots=True)
class EnoughSet:
    """A set of properties under which nothing fails.

    folders      number of folders on which the check succeeded; it failed on none
    is_complete  these are all possible folders, and the check decided on each
    """

    names: frozenset[str]
    folders: int
    is_complete: bool


@dataclass
class Needs:
    """The result of a search.

    sets      the weakest sets of properties that are enough, the weakest first
    failures  different failures; those without any property come first, those with few lost changes before others
    is_complete  whether each set was tried on all its folders, and there are no other sets
    """

    sets: list[EnoughSet] = field(default_factory=list)
    failures: list[BadFolder] = field(default_factory=list)
    is_complete: bool = False

    @property
    def hopeless(self) -> BadFolder | None:
        """A failure that no property prevents."""
        return next((failure for failure in self.failures if not failure.broken), None)


def find_needs(protocol: Protocol, judge: Judge, limits: SearchLimits, progress: Callable[[str], None]) -> Needs:
    """The weakest sets of properties under which `judge` finds nothing wrong."""
    search = _Search(protocol, judge, limits)
    progress("on file systems without any property")
    needs, excluded = search.without_any()
    choice = _Choice(excluded, Strengths(protocol))
    for failure in needs.failures:
        choice.add(failure)
    while len(needs.sets) < limits.sets and not needs.hopeless:
        names = choice.weakest()
        if names is None:
            needs.is_complete = all(each.is_complete for each in needs.sets)
            break
        progress(f"on file systems with {', '.join(in_order(names)) or 'no property'}")
        found = search.under(names)
        if isinstance(found, EnoughSet):
            needs.sets.append(found)
            choice.leave_out(names)
        else:
            needs.failures.append(found)
            choice.add(found)
    return needs


def is_enough(
    protocol: Protocol,
    judge: Judge,
    limits: SearchLimits,
    names: frozenset[str],
    implications: frozenset[Implication] | None = None,
) -> EnoughSet | BadFolder:
    """Whether these properties are enough; if not, the first failure that they allow.

    `implications` stand in the place of those that a file system with these properties has.
    """
    return _Search(protocol, judge, limits).under(names, implications)


def in_order(names: frozenset[str]) -> list[str]:
    """Names of properties in the order of the tables."""
    return [each.name for each in ASSUMPTIONS if each.name in names]


class _Choice:
    """Chooses the weakest set that prevents all known failures.

    `excluded` has, for each property, the numbers of the states that it does not allow, of those that were looked at.
    The set with the fewest of them is tried first. `strengths` compares properties exactly.
    """

    def __init__(self, excluded: dict[str, frozenset[int]], strengths: Strengths) -> None:
        self._strengths = strengths
        self._chosen = {name: z3.Bool(name) for name in excluded}
        self._solver = z3.Optimize()
        for place, (name, states) in enumerate(excluded.items(), 1):  # of equally strong ones, the first of the tables
            self._solver.add_soft(z3.Not(self._chosen[name]), weight=len(states) * (len(excluded) + 1) + place)

    def add(self, failure: BadFolder) -> None:
        """A failure that has to be prevented."""
        self._solver.add(z3.Or([self._chosen[name] for name in failure.broken]))

    def weakest(self) -> frozenset[str] | None:
        """The next set. None if there is no other."""
        found = self._solver.check()
        if found == z3.unknown:
            raise KeyboardInterrupt(self._solver.reason_unknown())
        if found == z3.unsat:
            return None
        model = self._solver.model()
        return frozenset(name for name, variable in self._chosen.items() if z3.is_true(model[variable]))

    def leave_out(self, names: frozenset[str]) -> None:
        """Choose neither this set again nor one that has a stronger property in the place of one of them."""
        stronger = [[each for each in self._chosen if self._strengths.is_as_strong(each, name)] for name in names]
        self._solver.add(z3.Or([z3.And([z3.Not(self._chosen[each]) for each in group]) for group in stronger]))


class _Search:
    """Looks for folders on which the check fails."""

    def __init__(self, protocol: Protocol, judge: Judge, limits: SearchLimits) -> None:
        self._protocol = protocol
        self._slots = Slots(protocol)
        self._properties = Properties(protocol)
        self._judge = judge
        self._limits = limits

    def without_any(self) -> tuple[Needs, dict[str, frozenset[int]]]:
        """Failures without any property, one for each message and each set of properties that would prevent it.

        Besides, for each property the numbers of the states that it does not allow.
        """
        found: dict[tuple[str, frozenset[str]], BadFolder] = {}
        excluded: dict[str, set[int]] = {
            name: set() for name, implications in implications_of(self._protocol).items() if name and implications
        }
        tried = _Trials()
        for number, (state, moment, message) in enumerate(self._judged(implications_with(self._protocol, ()), tried)):
            broken = self._properties.broken_by(state, moment)
            for name in broken:
                excluded[name].add(number)
            if message:
                found.setdefault((message, broken), BadFolder(moment, state, message, broken))
        return (
            Needs(failures=list(found.values())),
            {name: frozenset(states) for name, states in excluded.items()},
        )

    def under(self, names: frozenset[str], implications: frozenset[Implication] | None = None) -> EnoughSet | BadFolder:
        """The first failure under some properties; without any, that they are enough."""
        tried = _Trials()
        known = implications_with(self._protocol, names) if implications is None else implications
        for state, moment, message in self._judged(known, tried):
            if message:
                return BadFolder(moment, state, message, self._properties.broken_by(state, moment))
        return EnoughSet(names, tried.folders - tried.unknown, tried.is_complete)

    def _judged(self, implications: frozenset[Implication], tried: "_Trials") -> Iterator[tuple[State, Moment, str]]:
        spaces = [Space(self._slots, moment, implications) for moment in moments(self._protocol, implications)]
        for level in _LEVELS:
            for space in spaces:
                states = space.states(level)
                while batch := list(islice(states, min(_BATCH, self._limits.folders - tried.folders))):
                    tried.folders += len(batch)
                    messages = self._judge([(state, space.moment) for state in batch])
                    for state, message in zip(batch, messages, strict=True):
                        tried.unknown += message is None
                        yield state, space.moment, message or ""
                if tried.folders >= self._limits.folders:
                    return
        tried.is_complete = tried.unknown == 0


@dataclass
class _Trials:
    folders: int = 0
    unknown: int = 0
    is_complete: bool = False
