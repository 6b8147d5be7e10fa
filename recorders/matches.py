"""The result of a comparison of two recorders, and requests in words."""

import math
from collections import Counter
from dataclasses import dataclass, field

from postcrash.recorders.trace import Request


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


def submission(request: Request) -> int:
    """The position of a disk's request."""
    assert request.submitted is not None
    return request.submitted


def completion(request: Request | MatchedRequest) -> float:
    """When the request was completed. A request that never was comes last."""
    return math.inf if request.completed is None else request.completed


def described(request: Request) -> str:
    """The request in a disagreement."""
    flags = " PREFLUSH" * request.preflush + " FUA" * request.fua
    place = f" of {request.sectors} sectors from {request.sector}" if request.sectors else ""
    position = request.submitted if request.submitted is not None else request.completed
    return f"{request.kind}{place}{flags} at {position}"
