"""Compares two recorders of one run, request by request: one at the disk, and one above it.

The recorder above sees requests as the file system made them. On their way down the kernel cuts writes to the test
disk's limit of one block. It also turns a FUA write, which virtio-blk does not carry, into a write and a flush. The
crash disk joins requests that come together, and so does QEMU. `RULES` names every difference that this can make; any
other difference is a disagreement. A rule that holds for one recorder only says so.

The comparison covers the marks, every sector of every write with its data, the order of writes to one sector, and
discards. For each flush and FUA write it covers what it makes stable and between which marks it stands. The order of
writes to different sectors between two flushes is not compared, because it does not change what a crash can leave.
"""

import math
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders import blklogwrites
from postcrash.recorders.trace import Request, Trace

RULES = {
    "split": "the kernel cut a write to the test disk's limit of one block: the disk saw several requests",
    "joined": "writes that come together, each followed by the next sectors, are joined: the disk saw one request",
    "FUA is a flush": "virtio-blk carries no FUA: the disk saw the write and, once that was completed, a flush",
    "two flushes": "device mapper cuts PREFLUSH|FUA into a flush that keeps FUA, and a write; below, it is two flushes",
    "one for several": "the kernel has one flush serve all flushes that were asked for before it began",
    "logged late": "dm-log-writes logs a FUA write at once, and an earlier write to its sectors when a flush covers it",
    "changed on the way": "the file system changed a write's buffer while it was under way, and wrote it once more",
    "behind the end": "the recording of the crash disk, or of blktrace, ends before the target is unmounted",
    "nothing to flush": "QEMU hands a flush on to blklogwrites only where a write was completed since the last one",
}

UNSTABLE = frozenset({"exfat", "jfs", "vfat"})
"""File systems that were seen to change a buffer while it was being written (docs/recorders.md)."""


@dataclass(slots=True)
class MatchedRequest:
    """A request of the recorder above, and when the disk saw it: positions in the disk's trace.

    `parts` are the disk's requests over its sectors. A FUA write counts as completed when its flush is.
    """

    request: Request
    submitted: int
    completed: int | None
    parts: tuple[Request, ...] = ()


@dataclass(slots=True)
class Agreement:
    """`placed` is in the order of the trace above. `explained` counts uses of each of `RULES`, by name."""

    placed: list[MatchedRequest] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


def compare(disk: Trace, above: Trace, *, is_stable: bool = True, is_threaded: bool = False) -> Agreement:
    """Find each request of `above` in the trace `disk` of a recorder at the disk, and each of `disk` in `above`.

    Traces without marks are those of a whole run, unmounting included. `is_stable` is False for a file system of
    `UNSTABLE`. Then a write has the data that the disk saw, if each byte of it belongs to this write or to the next
    write there. `is_threaded` is True if programs ran, because only their threads ask for several flushes at one time.

    Of writes with the same data, a FUA write is taken for the latest that it can be. If the traces do not agree then,
    it is taken for the first.
    """
    latest = _compared(disk, above, is_stable=is_stable, is_threaded=is_threaded, is_latest=True)
    if not latest.disagreements:
        return latest
    first = _compared(disk, above, is_stable=is_stable, is_threaded=is_threaded, is_latest=False)
    return latest if first.disagreements else first


def _compared(disk: Trace, above: Trace, *, is_stable: bool, is_threaded: bool, is_latest: bool) -> Agreement:
    result = Agreement()
    ours, theirs = ([(mark.word, mark.operation) for mark in trace.marks] for trace in (disk, above))
    if ours != theirs:
        result.disagreements.append(f"marks: {disk.recorder} has {ours}, {above.recorder} {theirs}")
        return result
    writes = _Writes(disk, above, result, is_stable, is_latest).place()
    flushes = _placed_flushes(disk, above, writes, is_threaded)
    result.placed += flushes.placed
    result.explained = +(result.explained + flushes.explained)
    result.disagreements += flushes.disagreements
    return result


class _Writes:
    """Finds writes and discards by their sectors. It takes the first one with equal content that is not found yet.

    With `is_latest`, a FUA write leaves as many of these for plain writes as are still to come.
    """

    def __init__(self, disk: Trace, above: Trace, result: Agreement, is_stable: bool, is_latest: bool) -> None:
        self._disk, self._above, self._result, self._is_stable = disk, above, result, is_stable
        self._is_latest = is_latest
        self._waiting: dict[_Key, deque[int]] = defaultdict(deque)
        """The disk's requests to each unit, by number, that are not found yet."""
        self._coming: dict[_Key, deque[Request]] = defaultdict(deque)
        """The requests of the trace above to each unit, starting with the one that is being found."""
        self._is_late = False
        """The request that is being found is logged before an earlier one to its sectors."""
        self._is_changed = False
        """The disk saw a mixture of the request that is being found and of the next one to its sectors."""
        self._unit = _unit(disk, above)
        for number, request in enumerate(disk.requests):
            for key in self._keys(request):
                self._waiting[key].append(number)
        for request in above.requests:
            for key in self._keys(request):
                self._coming[key].append(request)

    def place(self) -> dict[int, MatchedRequest]:
        """The requests that are found, by their numbers in the trace above."""
        placed: dict[int, MatchedRequest] = {}
        absent: list[int] = []
        for number, request in enumerate(self._above.requests):
            keys = self._keys(request)
            if keys and not any(self._waiting[key] for key in keys):
                absent.append(number)
            elif keys:
                placed[number] = self._found(request, keys)
            for key in keys:
                self._coming[key].popleft()
        self._absent(absent, placed)
        left = {numbers[0]: key for key, numbers in reversed(self._waiting.items()) if numbers}
        for number in sorted(left):
            self._disagree(f"{_shown(self._disk.requests[number])} is not in {self._above.recorder}")
        self._count_joined(placed.values())
        return placed

    def _disagree(self, text: str) -> None:
        if text not in self._result.disagreements[-1:]:
            self._result.disagreements.append(text)

    def _found(self, request: Request, keys: list["_Key"]) -> MatchedRequest:
        self._is_late = self._is_changed = False
        numbers = sorted({number for key in keys if (number := self._take(request, key)) is not None})
        parts = tuple(self._disk.requests[number] for number in numbers)
        self._result.explained["split"] += len(parts) > 1
        self._result.explained["logged late"] += self._is_late
        if self._is_changed:
            self._result.explained["changed on the way"] += 1
            request = replace(request, data=self._data(request, parts))
        ends = [part.completed for part in parts]
        completed = None if None in ends else max(end for end in ends if end is not None)
        return MatchedRequest(request, min(_submitted(part) for part in parts), completed, parts)

    def _take(self, request: Request, key: "_Key") -> int | None:
        """The disk's request for one unit of `request`."""
        waiting = self._waiting[key]
        if not waiting:
            self._disagree(f"{_shown(request)}: {self._disk.recorder} saw only a part of it")
            return None
        same = self._place_of(request, key)
        if same and request.fua:
            self._is_late = True
        elif same != 0 and not self._is_stable and self._is_on_the_way(waiting[0], key):
            self._is_changed, same = True, 0
        elif same:
            self._disagree(f"{_shown(request)}: an earlier write to its sectors comes later")
        elif same is None:
            self._disagree(f"{_shown(request)}: other data in {self._disk.recorder}")
        number = waiting[same or 0]
        del waiting[same or 0]
        return number

    def _place_of(self, request: Request, key: "_Key") -> int | None:
        """Where in the unit's queue the disk's request with the same data is; None if there is none.

        A FUA write is logged before plain writes that came first. If some of these, which are still to come, have the
        same data, it is taken for the write after them. If it was an earlier one, this only adds crash states.
        """
        alike = (place for place, number in enumerate(self._waiting[key]) if self._same(request, number, key))
        content = self._content(request, key)
        if not self._is_latest or not request.fua or content is None:
            return next(alike, None)
        coming = islice(self._coming[key], 1, None)
        before = sum(not each.fua and self._content(each, key) == content for each in coming)
        return max(islice(alike, before + 1), default=None)

    def _same(self, request: Request, number: int, key: "_Key") -> bool:
        ours, theirs = self._content(self._disk.requests[number], key), self._content(request, key)
        return ours is None or theirs is None or ours == theirs

    def _is_on_the_way(self, number: int, key: "_Key") -> bool:
        """Whether each byte of the disk's request is in the request that is being found or in the next one there."""
        found = self._content(self._disk.requests[number], key)
        versions = [self._content(request, key) for request in islice(self._coming[key], 2)]
        if found is None or len(versions) < 2:
            return False
        return all(byte in known for byte, *known in zip(found, *filter(None, versions), strict=True))

    def _absent(self, absent: list[int], placed: dict[int, MatchedRequest]) -> None:
        """Requests that the disk did not see must come behind everything that it saw."""
        last = max((number for number, found in placed.items() if not found.request.fua), default=-1)
        last_mark = max((mark.position for mark in self._above.marks), default=math.inf)
        for number in absent:
            request = self._above.requests[number]
            if self._disk.marks and _position(request) >= last_mark and (request.fua or number > last):
                self._result.explained["behind the end"] += 1
            else:
                self._disagree(f"{_shown(request)} of {self._above.recorder} is not in {self._disk.recorder}")

    def _keys(self, request: Request) -> list["_Key"]:
        """The units in which a request is found: each unit of a write, and a discard or write-zeroes as a whole."""
        if request.kind == "write":
            return list(range(request.sector, request.sector + request.sectors, self._unit))
        return [(request.kind, request.sector, request.sectors)] if request.sectors else []

    def _content(self, request: Request, key: "_Key") -> bytes | None:
        """The data of one unit, where the recorder sees data."""
        if request.data is None or not isinstance(key, int):
            return None
        start = (key - request.sector) * SECTOR_BYTES
        return request.data[start : start + self._unit * SECTOR_BYTES]

    def _data(self, request: Request, parts: Iterable[Request]) -> bytes:
        """The data of `request` as the disk's requests over its sectors have it."""
        pieces = {key: self._content(part, key) for part in parts for key in self._keys(part)}
        return b"".join(pieces.get(key) or self._content(request, key) or b"" for key in self._keys(request))

    def _count_joined(self, placed: Iterable[MatchedRequest]) -> None:
        users = Counter(part.submitted for found in placed for part in found.parts)
        self._result.explained["joined"] += sum(count > 1 for count in users.values())


def _placed_flushes(disk: Trace, above: Trace, writes: dict[int, MatchedRequest], is_threaded: bool) -> Agreement:
    """Where flushes and writes stand, given where each write was found.

    Where threads ask for flushes and the traces disagree, a request before that place may have had no flush of its own
    at the disk, but that of the request before it (`one for several`). It is the first one that lets the traces agree
    for longest: a later one would have two flushes where the disk saw one.
    """
    sharing: frozenset[int] = frozenset()
    best = _Flushes(disk, above, writes, sharing)
    best.place()
    while is_threaded and best.result.disagreements and len(sharing) < _SHARING_MAX:
        attempts = [
            _Flushes(disk, above, writes, sharing | {number}) for number in best.may_share[-_SHARING_TRIED_MAX:]
        ]
        for attempt in attempts:
            attempt.place()
        longest = max(attempts, key=lambda attempt: attempt.agreed, default=best)
        if longest.agreed <= best.agreed:
            break
        best, sharing = longest, longest.sharing
    return best.result


_SHARING_MAX = 200
"""So many shared flushes are looked for, because each takes a walk over the traces."""
_SHARING_TRIED_MAX = 8
"""So many requests before a disagreement are tried. Behind a shared flush the traces disagree soon."""


class _Flushes:
    """Finds the disk's flush for each flush of the trace above, and for each FUA write the flush that it became."""

    def __init__(
        self, disk: Trace, above: Trace, writes: dict[int, MatchedRequest], sharing: frozenset[int] = frozenset()
    ) -> None:
        """`sharing`: requests of the trace above, by number, that have the disk's flush of the request before them."""
        self._disk, self._above, self.sharing = disk, above, sharing
        self._writes = {number: replace(found) for number, found in writes.items()}
        self.result = Agreement()
        self.agreed: float = math.inf
        """So many steps were taken without a disagreement."""
        self.may_share: list[int] = []
        """Requests before the first disagreement that may have shared the disk's flush before theirs, and did not."""
        self._step = 0
        self._written = -1
        """When the disk had completed the data of all writes that the trace above has completed so far."""
        self._flushes = [request for request in disk.requests if request.kind == "flush"]
        self._submissions = [_submitted(flush) for flush in self._flushes]
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

    def place(self) -> None:
        """Go through the trace above. A flush counts when submitted (or else logged), a write when completed."""
        steps: list[tuple[float, bool, int]] = []
        for number, request in enumerate(self._above.requests):
            if request.kind == "flush" or request.preflush:
                steps.append((_position(request) if request.submitted is None else request.submitted, True, number))
            if number in self._writes:
                steps.append((_position(request), False, number))
        marks = deque(zip(self._above.marks, self._disk.marks, strict=True))
        span = _Span(-1, None)
        for self._step, (position, is_flush, number) in enumerate(sorted(steps)):
            while marks and marks[0][0].position <= position:
                span = _Span(marks.popleft()[1].position, None)
            span.end = marks[0][1].position if marks else None
            if is_flush:
                self._flush(number, self._above.requests[number], span)
            else:
                self._write(number, self._writes[number], span)
        self._skip(len(self._flushes))

    def _flush(self, number: int, request: Request, span: "_Span") -> None:
        """Take the next flush that was submitted after everything that `request` covers was completed."""
        if self._can_share(request, span):
            if number in self.sharing:
                self._share(request)
                return
            self._may_share(number)
        if self._is_needless():
            self._needless += 1
            return
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
            self.result.placed.append(MatchedRequest(request, _submitted(first), last.completed))

    def _can_share(self, request: Request, span: "_Span") -> bool:
        """Whether the flush that was taken last may serve `request`, too: it began after all that `request` covers.

        blk_kick_flush (block/blk-flush.c) sends one flush for all requests that wait for one. The flush that device
        mapper cuts off a write with FUA does not share here. It has ended when this write begins.
        """
        if request.fua or request.sectors or not self._next:
            return False
        last = self._flushes[self._next - 1]
        return _submitted(last) > self._written and span.holds(last)

    def _may_share(self, number: int) -> None:
        if not self.result.disagreements:
            self.may_share.append(number)

    def _share(self, request: Request) -> None:
        last = self._flushes[self._next - 1]
        self._of_flushes.add(self._next - 1)
        self._of_plain_flushes.add(self._next - 1)
        self.result.explained["one for several"] += 1
        self.result.placed.append(MatchedRequest(request, _submitted(last), last.completed))

    def _write(self, number: int, found: MatchedRequest, span: "_Span") -> None:
        self.result.placed.append(found)
        if found.request.completed is not None and self._close(found):
            self._is_dirty = True
        if found.completed is not None:
            self._written = max(self._written, found.completed)
        if found.request.fua and found.completed is not None:
            self._fua(number, found, found.completed, span)
        if found.completed is not None:
            self._completed = max(self._completed, found.completed)

    def _fua(self, number: int, found: MatchedRequest, written: int, span: "_Span") -> None:
        """Take the first flush that was submitted after the write was completed. Several FUA writes may share it."""
        place = bisect_right(self._submissions, written)
        found.completed = None
        if place == len(self._flushes):
            self._missing(found.request, span, written)
            return
        self._spare += 1 if place < self._next else len(found.parts) - 1
        found.completed = self._account(found.request, place, span).completed
        self.result.explained["FUA is a flush"] += 1
        if place in self._of_plain_flushes:
            if number in self.sharing:
                self.result.explained["one for several"] += 1
                return
            self._may_share(number)
        if place in self._of_flushes:
            self._disagree(f"{_shown(found.request)}: the only flush that it may have belongs to another request")

    def _account(self, request: Request, place: int, span: "_Span") -> Request:
        flush = self._flushes[place]
        self._is_dirty = False
        if place >= self._next:
            self._skip(place)
            self._next = place + 1
        if not span.holds(flush):
            self._disagree(f"{_shown(request)}: its {_shown(flush)} is in another operation")
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
            self._disagree(f"{_shown(found.request)}: {_shown(self._flushes[late[0]])} before it comes too late")
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
            self._disagree(f"{_shown(flush)} of {self._disk.recorder} belongs to nothing in {self._above.recorder}")
        self.result.explained["nothing to flush"] += max(self._needless - len(skipped), 0)
        self._needless = self._spare = 0

    def _missing(self, request: Request, span: "_Span", written: float = math.inf) -> None:
        """The disk may see no flush behind its last mark; for a FUA write only if it was `written` behind it too."""
        if self._disk.marks and span.end is None and written > span.start:
            self.result.explained["behind the end"] += 1
        else:
            self._disagree(f"{_shown(request)}: {self._disk.recorder} has no flush for it")

    def _disagree(self, text: str) -> None:
        self.agreed = min(self.agreed, self._step)
        self.result.disagreements.append(text)


@dataclass(slots=True)
class _Span:
    """The stretch between two marks of the disk's trace. The last one has no end."""

    start: int
    end: int | None

    def holds(self, flush: Request) -> bool:
        """Whether the flush was under way there. An operation may return before a flush ends that nobody waits for."""
        return _position(flush) > self.start and (self.end is None or _submitted(flush) < self.end)


_Key = int | tuple[str, int, int]


def _unit(*traces: Trace) -> int:
    """The largest number of sectors at whose multiples all writes begin and end."""
    writes = (request for trace in traces for request in trace.requests if request.kind == "write")
    return math.gcd(*(edge for request in writes for edge in (request.sector, request.sectors))) or 1


def _submitted(request: Request) -> int:
    """The position of a disk's request."""
    assert request.submitted is not None
    return request.submitted


def _position(request: Request) -> float:
    """When the request was completed. A request that never was comes last."""
    return math.inf if request.completed is None else request.completed


def _shown(request: Request) -> str:
    flags = " PREFLUSH" * request.preflush + " FUA" * request.fua
    place = f" of {request.sectors} sectors from {request.sector}" if request.sectors else ""
    position = request.submitted if request.submitted is not None else request.completed
    return f"{request.kind}{place}{flags} at {position}"
