"""Three readings of the prose of the device models agree on small random logs.

The core makes components of intervals. An encoding in z3 states the rules: which pieces may be kept together at an
instant. A drive in plain Python carries the rules out: it persists pieces one at a time, whenever it may. The three
share no code.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import eq

import pytest
import z3
from hypothesis import HealthCheck, given, settings

from .conftest import DISK_SECTORS, LETTERS, MODELS, Event, Log, Model, Recorder, random_logs

pytestmark = pytest.mark.slow

LOGS_PER_MODEL, LOGS_PER_MODEL_FULL = 60, 300


class Encoding:
    """The rules at the instant before event `now`, as constraints on which pieces are kept and what sectors show."""

    def __init__(self, log: Log, now: int) -> None:
        self._log, self._now = log, now
        self._pieces = [piece for piece in log.pieces if log.submitted[piece.request] < now]
        self._kept = [z3.Bool(f"kept_{i}") for i in range(len(self._pieces))]
        self._solver = z3.SimpleSolver()
        self._solver.add(*self._set_up(), *self._order())
        if log.model.flush == "persists":
            self._solver.add(*self._fua(), *self._flushes())
        elif log.model.flush == "orders":
            self._solver.add(*self._barriers())
        if log.model.through:
            self._solver.add(*self._kept_if(self._completed))
        self._shown = self._contents()

    def _completed(self, request: int) -> bool:
        return self._log.completed.get(request, self._now) < self._now

    def _kept_if(self, wanted: Callable[[int], bool]) -> Iterator[z3.BoolRef]:
        """Variables of the pieces whose request is `wanted`."""
        return (kept for piece, kept in zip(self._pieces, self._kept, strict=True) if wanted(piece.request))

    def _set_up(self) -> Iterator[z3.BoolRef]:
        """What had completed when the set-up ended is stable."""
        end = min(self._log.set_up_end, self._now)
        if end < self._now:
            yield from self._kept_if(self._completed_before(end))

    def _completed_before(self, end: int) -> Callable[[int], bool]:
        return lambda request: self._log.completed.get(request, end) < end

    def _fua(self) -> Iterator[z3.BoolRef]:
        """A FUA write is stable when it completes."""
        return self._kept_if(lambda request: self._log.is_fua(request) and self._completed(request))

    def _flushes(self) -> Iterator[z3.BoolRef]:
        """A flush that is done has made stable what had completed when it was submitted."""
        for flush, at in self._log.submitted.items():
            if at >= self._now or not self._log.is_flush(flush):
                continue
            done = z3.Bool(f"done_{flush}")
            covered = list(self._kept_if(self._completed_before(at)))
            yield z3.Implies(done, z3.And(covered))
            if self._completed(flush):
                yield done
            yield from (z3.Implies(kept, done) for kept in self._kept_if(partial(eq, flush)))

    def _barriers(self) -> Iterator[z3.BoolRef]:
        """If a piece behind a flush is kept, every piece in front of it is."""
        for flush, at in self._log.submitted.items():
            if at >= self._now or not self._log.is_flush(flush):
                continue
            behind, in_front = self._kept_if(self._is_behind(flush)), self._kept_if(self._completed_before(at))
            yield z3.Implies(z3.Or(*behind), z3.And(*in_front))

    def _is_behind(self, flush: int) -> Callable[[int], bool]:
        completed = self._log.completed.get(flush, self._now)
        return lambda request: request == flush or self._log.submitted[request] > completed

    def _order(self) -> Iterator[z3.BoolRef]:
        """If pieces persist in order, the first `count` pieces are kept."""
        count = z3.Int("count")
        if self._log.model.order == "submission":
            yield from (kept == (i < count) for i, kept in enumerate(self._kept))
        elif self._log.model.order == "completion":
            order = self._in_completion_order()
            yield from (self._kept[i] == (place < count) for place, i in enumerate(order))
            yield from (z3.Not(kept) for i, kept in enumerate(self._kept) if i not in order)

    def _in_completion_order(self) -> list[int]:
        completed = [i for i, piece in enumerate(self._pieces) if self._completed(piece.request)]
        return sorted(completed, key=lambda i: self._log.completed[self._pieces[i].request])

    def _contents(self) -> dict[z3.ArithRef, list[int]]:
        """What sectors show. Sectors that every piece treats alike have one variable."""
        order: Sequence[int] = range(len(self._pieces))
        if self._log.model.order == "completion":
            order = self._in_completion_order()
        alike: dict[tuple[tuple[int, str], ...], list[int]] = {}
        for sector in range(DISK_SECTORS):
            written = [(i, self._pieces[i].shows[sector]) for i in order if sector in self._pieces[i].shows]
            alike.setdefault(tuple(written), []).append(sector)
        shown = {}
        for layers, sectors in alike.items():
            content = z3.IntVal(LETTERS.index("."))
            for i, letter in layers:
                content = z3.If(self._kept[i], z3.IntVal(LETTERS.index(letter)), content)
            variable = z3.Int(f"shown_{sectors[0]}")
            self._solver.add(variable == content)
            shown[variable] = sectors
        return shown

    def contents(self) -> set[str]:
        """Every disk content that the rules allow."""
        found = set()
        while self._solver.check() == z3.sat:
            model = self._solver.model()
            disk = ["."] * DISK_SECTORS
            values = {variable: model.eval(variable).as_long() for variable in self._shown}
            for variable, value in values.items():
                for sector in self._shown[variable]:
                    disk[sector] = LETTERS[value]
            found.add("".join(disk))
            self._solver.add(z3.Or([variable != value for variable, value in values.items()]))
        return found


State = tuple[frozenset[int], frozenset[int]]
"""The pieces that have persisted, and the PREFLUSH writes under way that have had their flush."""


class Drive:
    """Plays a log event by event and follows every state that the drive can be in."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._pieces = log.pieces
        self._submitted: set[int] = set()
        self._completed: list[int] = []
        # For flushes under way (also those in PREFLUSH writes), the pieces that they cover.
        self._covered: dict[int, frozenset[int]] = {}
        # For a drive whose flushes order: the pieces in front of the flushes that have completed, and for each request
        # the pieces that must persist before it.
        self._in_front: frozenset[int] = frozenset()
        self._before: dict[int, frozenset[int]] = {}
        self._states: set[State] = {(frozenset(), frozenset())}

    def contents(self) -> list[set[str]]:
        """What the disk can show after a crash before each event, and at the end."""
        instants = [self._shown()]
        for event in self._log.events:
            self._play(event)
            instants.append(self._shown())
        return instants

    def _play(self, event: Event) -> None:
        if event[0] in ("write", "zero", "flush"):
            self._submitted.add(event[1])
            if self._log.is_flush(event[1]):
                self._covered[event[1]] = self._of(self._completed)
            self._before[event[1]] = self._in_front | self._covered.get(event[1], frozenset())
        elif event[0] == "complete":
            self._completed.append(event[1])
        self._work()
        if event[0] == "durable":
            self._require(self._of(self._completed))
        elif event[0] == "complete":
            own = [event[1]] if self._log.is_fua(event[1]) or self._log.model.through else []
            covered = self._covered.pop(event[1], frozenset())
            self._in_front |= covered
            stable = self._of(own) | covered
            self._require(stable if self._log.model.flush == "persists" else frozenset())

    def _of(self, requests: list[int]) -> frozenset[int]:
        return frozenset(i for i, piece in enumerate(self._pieces) if piece.request in requests)

    def _require(self, pieces: frozenset[int]) -> None:
        """The drive has said that `pieces` are stable."""
        under_way = frozenset(self._covered)
        self._states = {(kept, flushed & under_way) for kept, flushed in self._states if pieces <= kept}

    def _work(self) -> None:
        """Persist and flush in every possible way."""
        found, new = set(self._states), list(self._states)
        while new:
            for state in self._steps(*new.pop()):
                if state not in found:
                    found.add(state)
                    new.append(state)
        self._states = found

    def _steps(self, persisted: frozenset[int], flushed: frozenset[int]) -> Iterator[State]:
        for request, covered in self._covered.items():
            if request not in flushed and self._log.is_preflush(request) and covered <= persisted:
                yield persisted, flushed | {request}
        for i in self._next(persisted):
            request = self._pieces[i].request
            if self._log.model.flush == "orders":
                waits = not self._before[request] <= persisted
            else:
                honest = self._log.model.flush == "persists"
                waits = honest and request in self._covered and request not in flushed
            if not waits:
                yield persisted | {i}, flushed

    def _next(self, persisted: frozenset[int]) -> list[int]:
        """Pieces in the cache that may persist next, unless a flush holds them back."""
        cached = [i for i in self._in_order() if i not in persisted]
        return cached if self._log.model.order == "free" else cached[:1]

    def _in_order(self) -> list[int]:
        if self._log.model.order == "completion":
            return [i for request in self._completed for i, p in enumerate(self._pieces) if p.request == request]
        return [i for i, piece in enumerate(self._pieces) if piece.request in self._submitted]

    def _shown(self) -> set[str]:
        order = self._in_order()
        found = set()
        for persisted, _ in self._states:
            disk = dict.fromkeys(range(DISK_SECTORS), ".")
            for i in order:
                disk.update(self._pieces[i].shows if i in persisted else {})
            found.add("".join(disk.values()))
        return found


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_core_finds_what_the_rules_allow(recorder: Recorder, model: Model, pytestconfig: pytest.Config) -> None:
    logs = LOGS_PER_MODEL_FULL if pytestconfig.option.full else LOGS_PER_MODEL

    @settings(max_examples=logs, suppress_health_check=[HealthCheck.too_slow])
    @given(random_logs(model))
    def agree(log: Log) -> None:
        played = Drive(log).contents()
        found = recorder.contents(log)
        assert found == {edge: played[edge] for edge in found}
        assert found == {edge: Encoding(log, edge).contents() for edge in found}
        for now in range(log.set_up_end + 1, len(played)):
            edges = [min(edge for edge in found if edge >= now)]
            if model.through:  # a completion takes states away, and what an earlier instant has is not repeated
                edges += [edge for edge in found if edge < now][-1:]
            assert any(played[now] <= found[edge] for edge in edges), f"event {now} can show what {edges} cannot"

    agree()


WIDER = [
    ("ordered", "cache"),
    ("cache", "cache:2048"),
    ("cache:2048", "torn"),
    ("ordered", "ordered:1024"),
    ("through", "cache"),
    ("through", "plp"),
    ("plp", "torn"),
    ("cache", "barrier"),
    ("barrier", "lying"),
    ("barrier", "barrier:2048"),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_a_model_has_every_state_of_a_narrower_one(narrow: str, wide: str, pytestconfig: pytest.Config) -> None:
    examples = 100 if pytestconfig.option.full else 40
    models = {model.name: model for model in MODELS}

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(random_logs(models[wide]))
    def include(log: Log) -> None:
        for few, more in zip(Drive(Log(models[narrow], log.events)).contents(), Drive(log).contents(), strict=True):
            assert few <= more

    include()
