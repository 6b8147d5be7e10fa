"""What a recorder saw of one run, in a form that traces of different recorders can be compared in."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Request:
    """One block request.

    sector, sectors   in units of 512 B; (0, 0) for a flush without data
    preflush, fua     as the recorder saw them; a path that does not carry them shows False
    data              content of a write; None where the recorder sees none
    submitted         position in the trace's own order; None where the recorder does not see submissions
    completed         likewise; None for a request that was never completed, or where completions are not seen
    """

    kind: Literal["write", "flush", "discard", "write-zeroes"]
    sector: int
    sectors: int
    preflush: bool
    fua: bool
    data: bytes | None
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
    """Requests and marks of one run, as `recorder` saw them."""

    recorder: str
    requests: tuple[Request, ...]
    marks: tuple[Mark, ...]
