"""What a file holds, as runs of bytes with one source each."""

from collections.abc import Iterable
from typing import NamedTuple

ZERO = "zero"

Segments = tuple["Segment", ...]


class Segment(NamedTuple):
    """The bytes from `start` up to `end` (not included), all from `source`.

    Sources: `zero`, `write:TAG`, `stale` (filler of free space), `other`, `error:ERRNO` (could not be read).
    """

    start: int
    end: int
    source: str


def written(tag: int) -> str:
    """The source of the bytes that the write with `tag` put there."""
    return f"write:{tag}"


def merged(segments: Iterable[Segment]) -> Segments:
    """The same content in the longest runs. `segments` must be in order and without gaps; empty ones vanish."""
    runs: list[Segment] = []
    for segment in segments:
        if segment.start == segment.end:
            continue
        if runs and runs[-1].end == segment.start and runs[-1].source == segment.source:
            segment = Segment(runs.pop().start, segment.end, segment.source)
        runs.append(segment)
    return tuple(runs)


def clipped(segments: Segments, start: int, end: int) -> Segments:
    """What of `segments` lies between `start` and `end`."""
    return tuple(
        Segment(max(segment.start, start), min(segment.end, end), segment.source)
        for segment in segments
        if segment.start < end and segment.end > start
    )


def resized(segments: Segments, size: int) -> Segments:
    """The content after a truncate to `size`: cut, or grown with zeros."""
    old_size = segments[-1].end if segments else 0
    if size <= old_size:
        return clipped(segments, 0, size)
    return merged((*segments, Segment(old_size, size, ZERO)))


def overwritten(segments: Segments, start: int, end: int, source: str) -> Segments:
    """The content after bytes from `source` were put at `start` up to `end`; a gap before them reads as zeros."""
    old_size = segments[-1].end if segments else 0
    grown = resized(segments, max(old_size, end))
    tail = clipped(grown, end, max(old_size, end))
    return merged((*clipped(grown, 0, start), Segment(start, end, source), *tail))
