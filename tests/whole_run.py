"""The log of dm-log-writes in the order in which QEMU's blklogwrites has the same run."""

import math
from dataclasses import replace

from postcrash.recorders.matches import Agreement, MatchedRequest
from postcrash.recorders.trace import Request, Trace


def whole_run(above: Trace, agreement: Agreement) -> Trace:
    """`above` without marks, for a comparison with QEMU's log, which has writes in the order of their submission.

    The `agreement` with the crash disk places each write before the flushes that were submitted while the write was
    under way. dm-log-writes places it behind them, because it logs only what a flush covers for certain. Such a write
    has no completion here, because it is not known whether QEMU's disk had completed it by a flush. A write that the
    crash disk did not see has none either.
    """
    placed = {_completed_at(found.request): found for found in agreement.placed}
    flushes = [found for found in agreement.placed if found.request.kind == "flush" or found.request.fua]
    ordered: list[Request] = []
    for request in above.requests:
        place = len(ordered)
        if request.kind == "write" and not request.fua:
            own = placed.get(_completed_at(request))
            behind = {_completed_at(each.request) for each in flushes if own and each.submitted > own.submitted}
            place = next((n for n, each in enumerate(ordered) if _completed_at(each) in behind), place)
            if own is None or place < len(ordered) or any(_overlap(own, each) for each in flushes):
                request = replace(request, completed=None)
        ordered.insert(place, request)
    return Trace(above.recorder, tuple(ordered), ())


def _overlap(one: MatchedRequest, other: MatchedRequest) -> bool:
    ends = (math.inf if each.completed is None else each.completed for each in (one, other))
    return all(start < end for start, end in zip((other.submitted, one.submitted), ends, strict=True))


def _completed_at(request: Request) -> float:
    return math.inf if request.completed is None else request.completed
