"""Compares two recorders of one run, request by request: one at the disk, and one above it.

The recorder above sees requests as the file system made them. On their way down the kernel cuts writes to the test
disk's limit of 126 blocks. It also turns a FUA write, which virtio-blk does not carry, into a write and a flush. The
crash disk joins such parts again if they come together, and QEMU joins any requests. `RULES` names every difference
that this can make; any other difference is a disagreement. A rule that holds for one recorder only says so.

The comparison covers the marks, every sector of every write with its data, the order of writes to one sector, and
discards. For each flush and FUA write it covers what it makes stable and between which marks it stands. The order of
writes to different sectors between two flushes is not compared, because it does not change what a crash can leave.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.flushes import placed_flushes
from postcrash.recorders.matches import Agreement, MatchedRequest, completion, described, submission
from postcrash.recorders.trace import Request, Trace

RULES = {
    "split": "the kernel cut a write to the test disk's limit of 126 blocks: the disk saw several requests",
    "joined": "writes that come together, each followed by the next sectors, are joined: by QEMU, and by the crash "
    "disk behind a part of 126 blocks. The disk saw one request",
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
    flushes = placed_flushes(disk, above, writes, is_threaded)
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
            self._disagree(f"{described(self._disk.requests[number])} is not in {self._above.recorder}")
        self._count_joined(placed.values())
        self._check_order(placed.values())
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
        return MatchedRequest(request, min(submission(part) for part in parts), completed, parts)

    def _take(self, request: Request, key: "_Key") -> int | None:
        """The disk's request for one unit of `request`."""
        waiting = self._waiting[key]
        if not waiting:
            self._disagree(f"{described(request)}: {self._disk.recorder} saw only a part of it")
            return None
        same = self._place_of(request, key)
        if same and request.fua:
            self._is_late = True
        elif same != 0 and not self._is_stable and self._is_on_the_way(waiting[0], key):
            self._is_changed, same = True, 0
        elif same:
            self._disagree(f"{described(request)}: an earlier write to its sectors comes later")
        elif same is None:
            self._disagree(f"{described(request)}: other data in {self._disk.recorder}")
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
            if self._disk.marks and completion(request) >= last_mark and (request.fua or number > last):
                self._result.explained["behind the end"] += 1
            else:
                self._disagree(f"{described(request)} of {self._above.recorder} is not in {self._disk.recorder}")

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

    def _check_order(self, placed: Iterable[MatchedRequest]) -> None:
        """A request counts from its first part on. Nothing else to the sectors of a later part may come between."""
        latest: dict[int, int] = {}
        for found in sorted(placed, key=lambda found: found.submitted):
            end = found.request.sector + found.request.sectors
            for part in found.parts:
                sectors = range(
                    max(part.sector, found.request.sector), min(part.sector + part.sectors, end), self._unit
                )
                if any(submission(part) < latest.get(sector, -1) for sector in sectors):
                    self._disagree(f"{described(found.request)}: another write came between its parts")
                latest |= dict.fromkeys(sectors, submission(part))

    def _count_joined(self, placed: Iterable[MatchedRequest]) -> None:
        users = Counter(part.submitted for found in placed for part in found.parts)
        self._result.explained["joined"] += sum(count > 1 for count in users.values())


_Key = int | tuple[str, int, int]


def _unit(*traces: Trace) -> int:
    """The largest number of sectors at whose multiples all writes begin and end."""
    writes = (request for trace in traces for request in trace.requests if request.kind == "write")
    return math.gcd(*(edge for request in writes for edge in (request.sector, request.sectors))) or 1
