"""Bytes that collapse-range or insert-range has moved, and what a later write puts over them in place.

The later write goes to the block that stands there after the shift. If a crash keeps this write and loses the shift,
which is metadata, the block stands where it stood before, with the new bytes in it.
"""

from collections.abc import Iterable, Iterator

from postcrash.model import Segment, Workload
from postcrash.model.argument import SHIFTS
from postcrash.model.segments import Segments, shifted, write_of


def displaced(workload: Workload, states: Iterable[Segments]) -> frozenset[Segment]:
    """Where a crash that loses shifts of the workload may show writes that came after them.

    `states` are a file's contents, one after the other. A shift is seen by bytes of one write at another distance from
    their place than in a state before.
    """
    if not any(operation.mode in SHIFTS for operation in workload.operations):
        return frozenset()
    distances: dict[int, set[int]] = {}
    shifts: set[int] = set()
    late: set[int] = set()
    found: set[Segment] = set()
    for segments in states:
        moved = list(_writes(segments))
        shifts |= {distance - each for _, tag, distance in moved for each in distances.get(tag, ())} - {0}
        late |= {tag for _, tag, _ in moved if shifts and tag not in distances}
        for _, tag, distance in moved:
            distances.setdefault(tag, set()).add(distance)
        found |= {each for segment, tag, _ in moved if tag in late for each in _shifted_back(segment, shifts)}
    return frozenset(found)


def _writes(segments: Segments) -> Iterator[tuple[Segment, int, int]]:
    """The segments that writes made: segment, tag of the write, distance from its place."""
    for segment in segments:
        write = write_of(segment.source)
        if write is not None:
            yield segment, *write


def _shifted_back(segment: Segment, shifts: Iterable[int]) -> Iterator[Segment]:
    for shift in shifts:
        (back,) = shifted((segment,), -shift)
        if back.start >= 0:
            yield back


def sources_at(found: frozenset[Segment], start: int, end: int) -> set[str]:
    """The sources that `found` has anywhere between two bytes."""
    return {segment.source for segment in found if segment.start < end and start < segment.end}
