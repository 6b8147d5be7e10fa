"""What a file holds, as runs of bytes with one source each."""

import re
from collections.abc import Iterable
from typing import NamedTuple

ZERO = "zero"
BYTES = "bytes:"
"""The prefix of sources that spell their bytes out (model/wire/src/content.rs)."""
_WRITTEN = re.compile(r"write:([0-9]+)([+-][0-9]+)?")

Segments = tuple["Segment", ...]


class Segment(NamedTuple):
    """The bytes from `start` up to `end` (not included), all from `source`.

    Sources: `zero`, `write:TAG`, `stale` (filler of free space), `other`, `error:ERRNO` (could not be read). Bytes of a
    write that are not where the write put them have the distance behind the tag: `write:3+4096` stands 4096 bytes
    further on.
    """

    start: int
    end: int
    source: str


def written(tag: int) -> str:
    """The source of the bytes that the write with `tag` put there."""
    return f"write:{tag}"


def write_of(source: str) -> tuple[int, int] | None:
    """The tag of the write that made bytes of `source`, and how far they have been moved. None if no write did."""
    match = _WRITTEN.fullmatch(source)
    return (int(match[1]), int(match[2] or 0)) if match else None


def shifted(segments: Iterable[Segment], by: int) -> Segments:
    """The same bytes, `by` bytes further on."""
    return tuple(Segment(start + by, end + by, _moved(source, by)) for start, end, source in segments)


def _moved(source: str, by: int) -> str:
    write = write_of(source)
    if write is None:
        return source
    tag, distance = write[0], write[1] + by
    return f"{written(tag)}{distance:+}" if distance else written(tag)


def merged(segments: Iterable[Segment]) -> Segments:
    """The same content in the longest runs. `segments` must be in order and without gaps; empty ones vanish."""
    runs: list[Segment] = []
    for segment in segments:
        if segment.start == segment.end:
            continue
        is_literal = segment.source.startswith(BYTES)  # two runs with equal literal bytes are not one run of them
        if runs and runs[-1].end == segment.start and runs[-1].source == segment.source and not is_literal:
            segment = Segment(runs.pop().start, segment.end, segment.source)
        runs.append(segment)
    return tuple(runs)


def clipped(segments: Segments, start: int, end: int) -> Segments:
    """The part of `segments` between `start` and `end`."""
    return tuple(
        Segment(max(segment.start, start), min(segment.end, end), segment.source)
        for segment in segments
        if segment.start < end and segment.end > start
    )


def spliced(segments: Segments, start: int, end: int, inserts: bool) -> Segments:
    """The content after a range of zeros was put in, or after a range was taken out."""
    before, size = clipped(segments, 0, start), segments[-1].end if segments else 0
    if inserts:
        tail = shifted(clipped(segments, start, size), end - start)
        return merged((*before, Segment(start, end, ZERO), *tail))
    return merged((*before, *shifted(clipped(segments, end, size), start - end)))


def resized(segments: Segments, size: int) -> Segments:
    """The content after a truncate to `size`: cut, or grown with zeros."""
    old_size = segments[-1].end if segments else 0
    if size <= old_size:
        return clipped(segments, 0, size)
    return merged((*segments, Segment(old_size, size, ZERO)))


def overwritten(segments: Segments, start: int, end: int, source: str) -> Segments:
    """The content after bytes from `source` were put at `start` up to `end`. A gap before them reads as zeros."""
    old_size = segments[-1].end if segments else 0
    grown = resized(segments, max(old_size, end))
    tail = clipped(grown, end, max(old_size, end))
    return merged((*clipped(grown, 0, start), Segment(start, end, source), *tail))
