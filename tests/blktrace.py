"""Traces of the kernel's blktrace, as requests.

The format is that of include/uapi/linux/blktrace_api.h. Each event is a `struct blk_io_trace` of 48 bytes, or from
Linux 6.19 on a `struct blk_io_trace2` of 64 bytes, and then `pdu_len` bytes that belong to it. Every CPU has a file of
its own and numbers its events there, except for notifications. A trace shows no data, and the older format shows
write-zeroes as a write. Everything else of a request is there, also PREFLUSH and FUA as they were requested.

A kernel that has the newer format leaves every event with FUA out of a trace in the older format. `__blk_add_trace`
drops every action that is greater than the highest flag of the older format, because this format cannot express such an
action. That highest flag is FUA.
"""

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.trace import Mark, Request, Trace

NAME = "blktrace"
BYTES_MAX = 64 << 20
EVENTS_MAX = 1_000_000
MESSAGE = "postcrash"
"""First word of the agent's messages, `postcrash started N` and `postcrash returned N`. Other messages are skipped."""

Level = Literal["queued", "issued"]

_MAGIC = 0x65617400
_EVENTS = {7: struct.Struct("<4xIQQII8xI2xH"), 8: struct.Struct("<4xIQQI4xQ4xI2xH12x")}
"""By version of the format: sequence, time, sector, bytes, action, CPU and `pdu_len`; other fields are skipped."""
_QUEUE, _REQUEUE, _INSERT, _ISSUE, _COMPLETE = 1, 5, 6, 7, 8
_ACTION = 0xFF
_CGROUP = 1 << 8
_CGROUP_BYTES = 8
_WRITE, _FLUSH, _NOTIFY, _DISCARD, _FUA, _WRITE_ZEROES = (1 << (16 + bit) for bit in (1, 2, 10, 13, 15, 22))
_NOTE_MESSAGE = 2


class BlktraceError(ValueError):
    """The bytes are not a trace of blktrace. The text says where and why."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One event: `time` is in ns, `sector` in 512 B, `size` in bytes; `action` is what happened, with its flags."""

    time: int
    cpu: int
    sector: int
    size: int
    action: int
    text: bytes

    @property
    def what(self) -> int:
        """Queued, issued and so on. For a notification it is the kind."""
        return self.action & _ACTION


def read_events(content: bytes) -> list[TraceEvent]:
    """The events of all CPUs, by time. `content` is their files one after the other. Raises `BlktraceError`."""
    if len(content) > BYTES_MAX:
        raise BlktraceError(f"a trace of {len(content)} bytes; at most {BYTES_MAX} are read")
    return sorted(_events(content), key=lambda event: (event.time, event.cpu))


def _events(content: bytes) -> Iterator[TraceEvent]:
    at = count = 0
    latest: dict[int, int] = {}
    while at < len(content):
        count += 1
        if count > EVENTS_MAX:
            raise BlktraceError(f"byte {at}: more than {EVENTS_MAX} events")
        form = _format(content, at)
        if len(content) - at < form.size:
            raise BlktraceError(f"byte {at}: an event of {form.size} bytes is cut off")
        sequence, time, sector, size, action, cpu, extra = form.unpack_from(content, at)
        if not action & _NOTIFY:
            before = latest.get(cpu, 0)
            if before >= sequence:
                raise BlktraceError(f"byte {at}: event {sequence} of CPU {cpu} stands behind event {before}")
            latest[cpu] = sequence
        start = at + form.size + (_CGROUP_BYTES if action & _CGROUP else 0)
        at += form.size + extra
        if at > len(content):
            raise BlktraceError(f"byte {at - extra}: {extra} bytes of an event are cut off")
        yield TraceEvent(time, cpu, sector, size, action, content[start:at])


def _format(content: bytes, at: int) -> struct.Struct:
    """The form of the event that begins at `at`, by its version."""
    magic = int.from_bytes(content[at : at + 4], "little")
    if magic & ~0xFF == _MAGIC:
        if form := _EVENTS.get(magic & 0xFF):
            return form
        raise BlktraceError(f"byte {at}: version {magic & 0xFF} of the format; versions 7 and 8 are read")
    if int.from_bytes(content[at : at + 4], "big") & ~0xFF == _MAGIC:
        raise BlktraceError(f"byte {at}: a trace of a machine with the other byte order")
    raise BlktraceError(f"byte {at}: not a trace of blktrace: {magic:#x} where an event should begin")


def read_blktrace(content: bytes, level: Level = "issued") -> Trace:
    """The writes, flushes and discards in a trace, with the agent's marks. Raises `BlktraceError`.

    `issued` has requests as the driver gets them: split, merged, and with PREFLUSH and FUA taken apart where the drive
    needs this. `queued` has the requests of the file systems, without completions. Positions are numbers of events,
    from 0.
    """
    matching = _Matching()
    marks: list[Mark] = []
    for position, event in enumerate(read_events(content)):
        if event.action & _NOTIFY:
            marks += _mark(event, position)
            continue
        request = _request(event, position)
        if request is None:
            continue
        if event.what == (_ISSUE if level == "issued" else _QUEUE):
            matching.start(request)
        elif level == "issued" and event.what in (_INSERT, _REQUEUE):
            matching.put_back(request)
        elif level == "issued" and event.what == _COMPLETE:
            matching.complete(request, position)
    return Trace(NAME, matching.requests(), tuple(marks))


class _Matching:
    """Finds the completion of each request: the next completion of the same kind over the same sectors.

    A driver that takes no more requests gives one back, and the kernel issues it again. The trace shows this as a
    requeue, or as an insertion of a request that is under way. Such an insertion may also be another request just like
    it; then both complete.
    """

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._under_way: dict[tuple[str, int, int], deque[int]] = {}
        self._given_back: dict[tuple[str, int, int], deque[int]] = {}

    def start(self, request: Request) -> None:
        """A request is issued."""
        self._under_way.setdefault(_key(request), deque()).append(len(self._requests))
        self._requests.append(request)

    def put_back(self, request: Request) -> None:
        """Note that a request like this goes into the queue."""
        if found := self._under_way.get(_key(request)):
            self._given_back.setdefault(_key(request), deque()).append(found.popleft())

    def complete(self, request: Request, position: int) -> None:
        """Note that a request like this is completed. A request from before the trace is skipped."""
        if found := self._under_way.get(_key(request)) or self._given_back.get(_key(request)):
            index = found.popleft()
            self._requests[index] = replace(self._requests[index], completed=position)

    def requests(self) -> tuple[Request, ...]:
        """All requests, in the order of their issue."""
        left_out = {index for indices in self._given_back.values() for index in indices}
        return tuple(request for index, request in enumerate(self._requests) if index not in left_out)


def _key(request: Request) -> tuple[str, int, int]:
    return request.kind, request.sector, request.sectors


def _request(event: TraceEvent, position: int) -> Request | None:
    flags = event.action
    sector, sectors = event.sector, event.size // SECTOR_BYTES
    kind: Literal["write", "flush", "discard", "write-zeroes"]
    if flags & _DISCARD:
        kind = "discard"
    elif flags & _WRITE_ZEROES:
        kind = "write-zeroes"
    elif flags & _FLUSH and not event.size:
        kind, sector = "flush", 0
    elif flags & _WRITE and event.size:
        kind = "write"
    else:
        return None
    preflush = kind == "write" and bool(flags & _FLUSH)
    return Request(
        kind=kind,
        sector=sector,
        sectors=sectors,
        preflush=preflush,
        fua=bool(flags & _FUA),
        submitted=position,
        completed=None,
    )


def _mark(event: TraceEvent, position: int) -> Iterator[Mark]:
    words = event.text.rstrip(b"\0\n").decode("ascii", "replace").split(" ")
    if event.what != _NOTE_MESSAGE or len(words) != 3 or words[0] != MESSAGE or len(words[2]) > 9:
        return
    if words[2].isascii() and words[2].isdigit():
        if words[1] == "started":
            yield Mark("started", int(words[2]), position)
        elif words[1] == "returned":
            yield Mark("returned", int(words[2]), position)
