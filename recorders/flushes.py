"""Finds the disk's flush for each flush and each FUA write of the trace above, and who may share one."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass, replace
from operator import ge

from postcrash.recorders import blklogwrites
from postcrash.recorders.matches import Agreement, MatchedRequest, completion, described, submission
from postcrash.recorders.trace import Request, Trace


def placed_flushes(disk: Trace, above: Trace, writes: dict[int, MatchedRequest], is_threaded: bool) -> Agreement:
    """Where flushes and writes stand, given where each write was found.

    Where threads ask for flushes, a request may have had no flush of its own at the disk, but that of the request
    before it (`one for several`). All ways to share flushes are followed. If several let the traces agree, the one is
    taken with which each write is stable last, because it has the crash states of all. If there is none, because one
    write is stable later with one way and another one with another, that is a disagreement.
    """
    steps = _steps(disk, above, writes)
    alone = _Walk(disk, above)
    for step in steps:
        alone.take(step, shares=False)
    alone.end()
    return _shared(steps, _Walk(disk, above), alone.result) if is_threaded else alone.result


def _shared(steps: list["_Step"], start: "_Walk", alone: Agreement) -> Agreement:
    """The result of `placed_flushes` with threads; `alone` is the result if no flush is shared."""
    ways = [start]
    for step in steps:
        after = [after for way in ways for after in way.after(step)]
        ways = [way for way in after if not way.result.disagreements]
        if len(ways) > 1:
            ways = _latest(ways, step.first_left)
        if not ways:
            return after[0].result
        if len(ways) > _WAYS_MAX:
            alone.disagreements.append(f"the flushes of threads may be shared in more than {_WAYS_MAX} ways")
            return alone
    for way in ways:
        way.end()
    ended = [way for way in ways if not way.result.disagreements]
    last = _latest(ended) or ways
    if len(last) > 1 and ended:
        last[0].result.disagreements.append("the flushes of threads can be shared in two ways")
    return last[0].result


def _latest(ways: list["_Walk"], first_left: float | None = None) -> list["_Walk"]:
    """Of ways that go on alike, those with which writes are stable last; of equal ones, that which shares least.

    `first_left` is that of the last step; None if no step is left. There may be several ways: with each another write
    is stable later.
    """
    alike: dict[Hashable, list[_Walk]] = {}
    for way in sorted(ways, key=_sharing):
        kept = alike.setdefault(None if first_left is None else way.state(first_left), [])
        if not any(_is_no_earlier(each, way) for each in kept):
            kept[:] = [*(each for each in kept if not _is_no_earlier(way, each)), way]
    return [way for kept in alike.values() for way in kept]


def _is_no_earlier(way: "_Walk", other: "_Walk") -> bool:
    """Whether each write is completed and stable no earlier than with the other way."""
    return all(map(ge, way.stable(), other.stable()))


def _sharing(way: "_Walk") -> tuple[int, list[int]]:
    """Orders ways: the one that shares least comes first, and of such ways the one that shares first."""
    return len(way.sharing), way.sharing


_WAYS_MAX = 64
"""The most ways to share flushes that are followed at one time."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A request of the trace above, where it counts: a flush when submitted (or else logged), a write when completed.

    number      the request's number
    flush       the request, if it is a flush here
    write       the request with its place at the disk, if it is a write here
    span        the marks between which it stands
    first_left  the first position at which the disk completed a write that comes behind this step
    """

    number: int
    flush: Request | None
    write: MatchedRequest | None
    span: "_Span"
    first_left: float


def _steps(disk: Trace, above: Trace, writes: dict[int, MatchedRequest]) -> list[_Step]:
    timed: list[tuple[float, bool, int]] = []
    for number, request in enumerate(above.requests):
        if request.kind == "flush" or request.preflush:
            timed.append((completion(request) if request.submitted is None else request.submitted, True, number))
        if number in writes:
            timed.append((completion(request), False, number))
    marks = deque(zip(above.marks, disk.marks, strict=True))
    span = _Span(-1, None)
    steps: list[_Step] = []
    for position, is_flush, number in sorted(timed):
        while marks and marks[0][0].position <= position:
            span = _Span(marks.popleft()[1].position, None)
        span = replace(span, end=marks[0][1].position if marks else None)
        flush, write = (above.requests[number], None) if is_flush else (None, writes[number])
        steps.append(_Step(number, flush, write, span, math.inf))
    first_left = math.inf
    for place in range(len(steps) - 1, -1, -1):
        write = steps[place].write
        steps[place] = replace(steps[place], first_left=first_left)
        if write is not None:
            first_left = min(first_left, completion(write))
    return steps


class _Walk:
    """Finds the disk's flush for each flush of the trace above, and for each FUA write the flush that it became."""

    def __init__(self, disk: Trace, above: Trace) -> None:
        self._disk, self._above = disk, above
        self.result = Agreement()
        self.sharing: list[int] = []
        """The requests of the trace above that shared the disk's flush of the request before, by number."""
        self._written = -1
        """When the disk had completed the data of all writes that the trace above has completed so far."""
        self._flushes = [request for request in disk.requests if request.kind == "flush"]
        self._submissions = [submission(flush) for flush in self._flushes]
        self._next = 0
        """The first of the disk's flushes that is not accounted for."""
        self._completed = -1
        """When the disk had completed everything that the trace above has completed so far."""
        self._of_flushes: set[int] = set()
        """The disk's flushes that belong to flushes of the trace above, not to FUA writes."""
        self._of_plain_flushes: set[int] = set()
        """Those that belong to flushes which device mapper did not cut off a write with FUA."""
        self._is_dirty = False
        """A write was certainly completed since the last flush accounted for."""
        self._needless = 0
        """Flushes of the trace above since the last one accounted for that the disk need not have seen."""
        self._spare = 0
        """Further flushes that FUA writes may have had: one for each that shares a flush, one for each further part."""

    def after(self, step: _Step) -> list["_Walk"]:
        """This walk a step further, and another one if the step's request may share a flush."""
        ways = [self]
        if self._can_share(step):
            other = self._copy()
            other.take(step, shares=True)
            other.sharing = [*self.sharing, step.number]
            ways = [other, self]
        self.take(step, shares=False)
        return ways

    def take(self, step: _Step, *, shares: bool) -> None:
        """Go a step further. With `shares` its request has the disk's flush of the request before it."""
        if step.flush is not None:
            self._flush(step.flush, step.span, shares)
        if step.write is not None:
            self._write(replace(step.write), step.span, shares)

    def end(self) -> None:
        """No request comes behind the last step."""
        self._skip(len(self._flushes))

    def state(self, first_left: float) -> tuple[Hashable, ...]:
        """All that later steps depend on, beside when writes are stable. `first_left` is that of the last step."""
        place = min(bisect_right(self._submissions, first_left), self._next - 1)
        numbers = (
            frozenset(n for n in flushes if n >= place) for flushes in (self._of_flushes, self._of_plain_flushes)
        )
        counts = (self._written, self._completed, self._next, self._is_dirty, self._needless, self._spare)
        return (*counts, *numbers, tuple(each for each in self._serving() if each[0] > first_left))

    def stable(self) -> list[float]:
        """When each write was stable, and when it was completed. Flushes do nothing else.

        A write is stable when a flush is completed that was submitted after the write was completed. A FUA write is
        stable as soon as it is completed itself.
        """
        serving = self._serving()
        moments: list[float] = []
        for found in self.result.placed:
            if found.request.kind != "flush":
                behind = bisect_right(serving, (completion(found), math.inf))
                flushed = serving[behind][1] if behind < len(serving) else math.inf
                moments += [min(flushed, completion(found)) if found.request.fua else flushed, completion(found)]
        return moments

    def _serving(self) -> list[tuple[int, float]]:
        """When flushes were submitted and completed.

        A flush is left out if one that was submitted later was completed no later.
        """
        serving: list[tuple[int, float]] = []
        flushes = {(each.submitted, completion(each)) for each in self.result.placed if each.request.kind == "flush"}
        for begin, end in sorted(flushes, reverse=True):
            if not serving or end < serving[-1][1]:
                serving.append((begin, end))
        return serving[::-1]

    def _copy(self) -> "_Walk":
        other = copy(self)
        other.result = Agreement(list(self.result.placed), self.result.explained.copy(), [])
        other._of_flushes, other._of_plain_flushes = set(self._of_flushes), set(self._of_plain_flushes)
        return other

    def _flush(self, request: Request, span: "_Span", shares: bool) -> None:
        """Take the next flush that was submitted after everything that `request` covers was completed.

        What device mapper cuts off a write with FUA takes a second flush behind it.
        """
        if shares:
            self.result.explained["one for several"] += 1
            place = self._next - 1
        elif self._is_needless():
            self._needless += 1
            return
        else:
            place = max(self._next, bisect_right(self._submissions, self._completed))
        if place == len(self._flushes):
            self._missing(request, span)
            return
        first = last = self._account(request, place, span)
        self._of_flushes.add(place)
        if not request.fua and not request.sectors:
            self._of_plain_flushes.add(place)
        if request.fua and not request.sectors and self._is_needless():
            self._needless += 1
        elif request.fua and not request.sectors:
            if self._next == len(self._flushes):
                self._missing(request, span)
                return
            last = self._account(request, self._next, span)
            self._of_flushes.add(self._next - 1)
            self.result.explained["two flushes"] += 1
        if not request.sectors:
            self.result.placed.append(MatchedRequest(request, submission(first), last.completed))

    def _can_share(self, step: _Step) -> bool:
        """Whether a flush that was taken before may serve the request, too: it began after all that this covers.

        blk_kick_flush (block/blk-flush.c) sends one flush for all requests that wait for one.
        """
        if step.flush is not None:
            last = self._flushes[self._next - 1] if self._next and not step.flush.sectors else None
            return last is not None and submission(last) > self._written and step.span.holds(last)
        if step.write is None or not step.write.request.fua or step.write.completed is None:
            return False
        return bisect_right(self._submissions, step.write.completed) in self._of_plain_flushes

    def _write(self, found: MatchedRequest, span: "_Span", shares: bool) -> None:
        self.result.placed.append(found)
        if found.request.completed is not None and self._close(found):
            self._is_dirty = True
        if found.completed is not None:
            self._written = max(self._written, found.completed)
        if found.request.fua and found.completed is not None:
            self._fua(found, found.completed, span, shares)
        if found.completed is not None:
            self._completed = max(self._completed, found.completed)

    def _fua(self, found: MatchedRequest, written: int, span: "_Span", shares: bool) -> None:
        """Take the first flush that was submitted after the write was completed. Several FUA writes may share it."""
        place = bisect_right(self._submissions, written)
        found.completed = None
        if place == len(self._flushes):
            self._missing(found.request, span, written)
            return
        self._spare += 1 if place < self._next else len(found.parts) - 1
        found.completed = self._account(found.request, place, span).completed
        self.result.explained["FUA is a flush"] += 1
        if shares:
            self.result.explained["one for several"] += 1
        elif place in self._of_flushes:
            self._disagree(f"{described(found.request)}: the only flush that it may have belongs to another request")

    def _account(self, request: Request, place: int, span: "_Span") -> Request:
        flush = self._flushes[place]
        self._is_dirty = False
        if place >= self._next:
            self._skip(place)
            self._next = place + 1
        if not span.holds(flush):
            self._disagree(f"{described(request)}: its {described(flush)} is in another operation")
        return flush

    def _close(self, found: MatchedRequest) -> bool:
        """In QEMU's log, a flush that was completed before this write was submitted stands before this write.

        The flush of a FUA write may stand behind this write, because both are under way together at one disk and not at
        the other. Then it is not certain what covers this write, and the result is False.
        """
        if self._disk.recorder != blklogwrites.NAME:
            return True
        place = bisect_right(self._submissions, found.submitted)
        late = [number for number in range(place, self._next) if number in self._of_flushes]
        if late:
            self._disagree(f"{described(found.request)}: {described(self._flushes[late[0]])} before it comes too late")
        if place < self._next:
            return False
        self._skip(place)
        self._next = place
        return True

    def _is_needless(self) -> bool:
        """Whether QEMU may leave out a flush here: no write was certainly completed since the last one.

        bdrv_co_flush (block/io.c) counts the writes that a node has completed (write_gen) and remembers the count at
        the last flush (flushed_gen). If the two are equal, it does not call blklogwrites.
        """
        return self._disk.recorder == blklogwrites.NAME and not self._is_dirty

    def _skip(self, place: int) -> None:
        """Skip the flushes before `place`: they were not needed, or belong to FUA writes. Others are disagreements."""
        skipped = self._flushes[self._next : place][self._spare :]
        for flush in skipped[self._needless :]:
            self._disagree(f"{described(flush)} of {self._disk.recorder} belongs to nothing in {self._above.recorder}")
        self.result.explained["nothing to flush"] += max(self._needless - len(skipped), 0)
        self._needless = self._spare = 0

    def _missing(self, request: Request, span: "_Span", written: float = math.inf) -> None:
        """The disk may see no flush behind its last mark; for a FUA write only if it was `written` behind it too."""
        if self._disk.marks and span.end is None and written > span.start:
            self.result.explained["behind the end"] += 1
        else:
            self._disagree(f"{described(request)}: {self._disk.recorder} has no flush for it")

    def _disagree(self, text: str) -> None:
        self.result.disagreements.append(text)


@dataclass(frozen=True, slots=True)
class _Span:
    """The stretch between two marks of the disk's trace. The last one has no end."""

    start: int
    end: int | None

    def holds(self, flush: Request) -> bool:
        """Whether the flush was under way there. An operation may return before a flush ends that nobody waits for."""
        return completion(flush) > self.start and (self.end is None or submission(flush) < self.end)
