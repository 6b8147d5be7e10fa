"""Bytes that collapse-range or insert-range has moved, and what a later write puts over them in place.

The later write goes to the block that stands there after the shift. If a crash keeps this write and loses the shift,
which is metadata, the block stands where it stood before, with the new bytes in it.
"""

from collections.abc import Iterable
from functools import lru_cache

from postcrash.model import Segment, Workload
from postcrash.model.argument import SHIFTS
from postcrash.model.operation import Operation
from postcrash.model.segments import Segments, clipped, shifted, spliced, write_of


def displaced(workload: Workload, states: Iterable[Segments]) -> frozenset[Segment]:
    """Where a crash that loses shifts of the workload may show writes that came after them.

    `states` are a file's contents after each operation that changed them. A shift comes behind those before it, so that
    none is lost without the later ones.
    """
    possible = _shifts(workload)
    shifts: list[Operation] = []
    seen: set[int] = set()
    found: set[Segment] = set()
    last: Segments = ()
    for state in states if possible else ():
        shifts += [operation for operation in possible if last and state == _after(last, operation)][:1]
        writes = [(segment, write[0]) for segment in state if (write := write_of(segment.source))]
        late = tuple(segment for segment, tag in writes if tag not in seen)
        seen.update(tag for _, tag in writes)
        for operation in reversed(shifts):
            late = _before(late, operation)
            found.update(segment for segment in late if segment not in state)
        last = state
    return frozenset(found)


@lru_cache(maxsize=64)
def _shifts(workload: Workload) -> tuple[Operation, ...]:
    return tuple(operation for operation in workload.operations if operation.mode in SHIFTS)


def sources_at(found: frozenset[Segment], start: int, end: int) -> set[str]:
    """The sources that `found` has anywhere between two bytes."""
    return {segment.source for segment in found if segment.start < end and start < segment.end}


def _after(segments: Segments, operation: Operation) -> Segments:
    start, end = operation.byte_range
    return spliced(segments, start, end, operation.mode == "insert-range")


def _before(segments: Segments, operation: Operation) -> Segments:
    """What the segments show without the shift. A block that insert-range has put in was nowhere."""
    start, end = operation.byte_range
    first, by = (end, start - end) if operation.mode == "insert-range" else (start, end - start)
    last = max((segment.end for segment in segments), default=0)
    return (*clipped(segments, 0, start), *shifted(clipped(segments, first, last), by))
