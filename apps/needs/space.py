"""The folders that a crash can leave, if a file system has certain properties and no others.

z3 finds them: a variable for each change says whether it is durable, and a clause stands for each implication. Of
states that differ only in changes that the application cannot see, one is found.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import z3

from postcrash.apps.needs.assumptions import Implication, implications_of
from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import Protocol

Literal: TypeAlias = Any
"""This is a z3.BoolRef, but z3 has no types."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Crashes while step `number` runs: steps before it have returned. After the last one, all have.

    end   changes with an index below it have been made
    outputs  what the program had written to its standard output by then
    """

    number: int
    end: int
    outputs: tuple[str, ...]


def moments(protocol: Protocol, implications: Collection[Implication]) -> list[Moment]:
    """The moments that matter: before each step returns that says something or that an implication names; the end.

    Between two of them, nothing is promised and nothing is said. So what can be left earlier can be left later, too.
    """
    promising = {implication.returned for implication in implications}
    found = []
    outputs: tuple[str, ...] = ()
    for step in protocol.steps:
        if step.outputs or step.number in promising:
            found.append(Moment(step.number, step.end, outputs))
        outputs += step.outputs
    return [*found, Moment(len(protocol.steps), len(protocol.changes), outputs)]


@cache
def _durable(change: int) -> Literal:
    """That the change of this index is durable."""
    return z3.Bool(f"durable {change}")


@cache
def _not_durable(change: int) -> Literal:
    return z3.Not(_durable(change))


def _any(literals: Collection[Literal]) -> Literal:
    """That one of them is true. z3.Or asks each literal for its sort, which takes several times as long."""
    context = z3.main_ctx()
    nodes = (z3.Ast * len(literals))(*(literal.as_ast() for literal in literals))
    return z3.BoolRef(z3.Z3_mk_or(context.ref(), len(literals), nodes), context)


class Space:
    """All states at one moment, under some implications."""

    def __init__(self, slots: Slots, moment: Moment, implications: Collection[Implication]) -> None:
        self.moment = moment
        self._slots = slots
        self._solver = z3.SolverFor("QF_FD")
        self._changes = slots.protocol.changes[: moment.end]
        self._durable = [_durable(change.index) for change in self._changes]
        self._not_durable = [_not_durable(change.index) for change in self._changes]
        self._kept = [self._keeping(change.index) for change in self._changes]
        self._whole: dict[frozenset[int], Literal] = {}
        for implication in implications:
            if self._applies(implication):
                premise = [self._not_durable[index] for index in implication.durable]
                self._add(_any([*premise, self._all_kept(implication.then)]))
        self._bounds: dict[int, Literal] = {}

    def _add(self, clause: Literal) -> None:
        """Add a clause. `Solver.add` would ask it for its sort."""
        z3.Z3_solver_assert(self._solver.ctx.ref(), self._solver.solver, clause.as_ast())

    def _applies(self, implication: Implication) -> bool:
        returned = implication.returned is None or implication.returned < self.moment.number
        return returned and all(index < self.moment.end for index in implication.durable)

    def _keeping(self, index: int) -> Literal:
        """That a change is durable, or a later one of its slot."""
        slot = self._changes[index].slot
        standing = [each for each in self._slots.of(slot) if index <= each.index < self.moment.end]
        return _any([self._durable[each.index] for each in standing])

    def _all_kept(self, changes: frozenset[int]) -> Literal:
        """That all of these changes that have been made are kept. Many implications ask for the same ones."""
        if changes not in self._whole:
            made = self._whole[changes] = z3.Bool(f"whole {len(self._whole)}")
            not_whole = z3.Not(made)
            for index in changes:
                if index < self.moment.end:
                    self._add(_any([not_whole, self._kept[index]]))
        return self._whole[changes]

    def states(self, losses_max: int | None = None) -> Iterator[State]:
        """States that an application can tell apart, each once in the life of the space.

        `losses_max`: the most changes that a state may have lost.
        """
        bound = [] if losses_max is None else [self._bound(losses_max)]
        while self._is_there_one(bound):
            model = self._solver.model()
            durable = frozenset(
                change.index
                for change, variable in zip(self._changes, self._durable, strict=True)
                if z3.is_true(model.eval(variable, model_completion=True))
            )
            state = State(self._slots, self.moment.end, durable)
            self._add(_any(list(self._differences(state))))
            yield state

    def keeps(self, implications: Collection[Implication]) -> bool:
        """Whether all states keep these implications, too."""
        return not self._is_there_one([_any([self._breaking(each) for each in implications if self._applies(each)])])

    def _breaking(self, implication: Implication) -> Literal:
        kept = [self._kept[index] for index in implication.then if index < self.moment.end]
        return z3.And([*(self._durable[index] for index in implication.durable), z3.Not(z3.And(kept))])

    def _is_there_one(self, bound: list[Literal]) -> bool:
        """Raises KeyboardInterrupt if z3 was interrupted: it knows nothing then, which is not that there is none."""
        found = self._solver.check(*bound)
        if found == z3.unknown:
            raise KeyboardInterrupt(self._solver.reason_unknown())
        return bool(found == z3.sat)

    def _bound(self, losses_max: int) -> Literal:
        if losses_max not in self._bounds:
            bound = self._bounds[losses_max] = z3.Bool(f"at most {losses_max} lost")
            lost = [z3.Not(kept) for kept in self._kept]
            self._solver.add(z3.Implies(bound, z3.AtMost(*lost, losses_max) if lost else z3.BoolVal(True)))
        return self._bounds[losses_max]

    def _differences(self, state: State) -> Iterator[Literal]:
        """What must differ for another folder to be seen: the last durable change of a slot that is seen now."""
        for slot in state.seen:
            winner = state.winner(slot)
            later = [each for each in self._slots.of(slot) if each.index < self.moment.end]
            if winner is not None:
                yield self._not_durable[winner.index]
                later = later[later.index(winner) + 1 :]
            yield from (self._durable[each.index] for each in later)


class Properties:
    """Says which properties do not allow a state."""

    def __init__(self, protocol: Protocol) -> None:
        self._asking: dict[int, list[tuple[str, Implication]]] = {}
        for name, implications in implications_of(protocol).items():
            for implication in implications:
                for index in implication.then:
                    self._asking.setdefault(index, []).append((name, implication))

    def broken_by(self, state: State, moment: Moment) -> frozenset[str]:
        """The properties of which the state breaks an implication."""
        asking = (
            (name, implication) for change in state.lost for name, implication in self._asking.get(change.index, [])
        )
        return frozenset(
            name
            for name, implication in asking
            if name
            and (implication.returned is None or implication.returned < moment.number)
            and implication.durable <= state.durable
        )


class Strengths:
    """Says whether one property allows nothing that another one does not allow."""

    def __init__(self, protocol: Protocol) -> None:
        self._implications = implications_of(protocol)
        every = frozenset[Implication]().union(*self._implications.values())
        self._moments, self._slots = moments(protocol, every), Slots(protocol)
        self._known: dict[tuple[str, str], bool] = {}

    def is_as_strong(self, name: str, other: str) -> bool:
        """Whether `other` allows each state, at each moment, that a file system with property `name` can leave."""
        if name == other:
            return True
        if (name, other) not in self._known:
            given = self._implications[""] | self._implications[name]
            spaces = (Space(self._slots, moment, given) for moment in reversed(self._moments))
            self._known[name, other] = all(space.keeps(self._implications[other]) for space in spaces)
        return self._known[name, other]


Judge: TypeAlias = Callable[[list[tuple[State, Moment]]], list[str | None]]
"""What is wrong with each of these states: nothing is empty, and None is not known."""
