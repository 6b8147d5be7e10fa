"""What a recorder saw of one run, in a form in which traces of different recorders can be compared."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One block request.

    sector, sectors   in units of 512 B; (0, 0) for a flush without data
    preflush, fua     as the recorder saw them; False for a path that does not carry them
    data              content of a write; None if the recorder sees none
    submitted         position in the trace's own order; None if the recorder does not see submissions
    completed         likewise; None if the request was never completed, or if completions are not seen
    """

    kind: Literal["write", "flush", "discard", "write-zeroes"]
    sector: int
    sectors: int
    preflush: bool = False
    fua: bool = False
    data: bytes | None = None
    submitted: int | None
    completed: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """The start or return of an operation (set-up included, from 0), at `position` of the trace's order."""

    word: Literal["started", "returned"]
    operation: int
    position: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests and marks of one run, as `recorder` saw them. `durable` is where the set-up had become durable."""

    recorder: str
    requests: tuple[Request, ...]
    marks: tuple[Mark, ...]
    durable: int | None = None


def behind_set_up(disk: Trace, above: Trace) -> tuple[Trace, Trace] | None:
    """What both recorders saw of one run after its set-up had become durable. Earlier requests decide nothing.

    `above` may begin there. None if that position is not known, or if a request was under way then.
    """
    marks = sum(mark.position > disk.durable for mark in disk.marks) if disk.durable is not None else 0
    requests = [_behind(trace) for trace in (disk, above)]
    if None in requests or len(above.marks) not in (marks, len(disk.marks)):
        return None
    ours, theirs = (
        replace(trace, requests=tuple(rest or ()), marks=trace.marks[len(trace.marks) - marks :])
        for trace, rest in zip((disk, above), requests, strict=True)
    )
    return ours, theirs


def _behind(trace: Trace) -> list[Request] | None:
    if trace.durable is None:
        return None
    rest = []
    for request in trace.requests:
        submitted = request.completed if request.submitted is None else request.submitted
        if submitted is None or submitted > trace.durable:
            rest.append(request)
        elif request.completed is None or request.completed > trace.durable:
            return None
    return rest
