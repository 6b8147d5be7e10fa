"""Segment lists compared with the plain arrays of bytes that they stand for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from postcrash.model.segments import Segment, Segments, clipped, merged, overwritten, resized

SOURCES = st.sampled_from(["zero", "write:1", "write:2"])
WRITES = st.tuples(st.integers(0, 20), st.integers(1, 10), SOURCES)


def expand(segments: Segments) -> list[str]:
    return [segment.source for segment in segments for _ in range(segment.start, segment.end)]


def assert_normal(segments: Segments) -> None:
    """The segments start at zero, have no gaps, are not empty, and are as long as possible."""
    assert [segment.start for segment in segments] == [0, *(segment.end for segment in segments)][: len(segments)]
    assert all(segment.start < segment.end for segment in segments)
    assert all(a.source != b.source for a, b in pairwise(segments))


@given(st.lists(WRITES), st.integers(0, 40))
def test_as_an_array(writes: list[tuple[int, int, str]], size: int) -> None:
    array: list[str] = []
    segments: Segments = ()
    for start, length, source in writes:
        array += ["zero"] * (start - len(array))
        array[start : start + length] = [source] * length
        segments = overwritten(segments, start, start + length, source)
        assert_normal(segments)
        assert expand(segments) == array
    resize = resized(segments, size)
    assert_normal(resize)
    assert expand(resize) == (array + ["zero"] * size)[:size]


def test_merged() -> None:
    parts = [Segment(0, 2, "zero"), Segment(2, 2, "other"), Segment(2, 5, "zero"), Segment(5, 6, "stale")]
    assert merged(parts) == (Segment(0, 5, "zero"), Segment(5, 6, "stale"))


def test_clipped() -> None:
    segments = (Segment(0, 4, "zero"), Segment(4, 8, "write:0"))
    assert clipped(segments, 2, 6) == (Segment(2, 4, "zero"), Segment(4, 6, "write:0"))
    assert clipped(segments, 8, 9) == ()
    assert clipped(segments, 4, 4) == ()
