"""Bytes that moved and other bytes can be the same by chance, and then it does not matter whose they are."""

import pytest

from postcrash.model import Entry, Segment
from postcrash.model.content import all_from
from postcrash.model.pattern import pattern

DISTANCE = 4096
MOVED = f"write:1+{DISTANCE}"
SAME = next(at for at in range(DISTANCE, 1 << 20) if pattern(1, at - DISTANCE, 1) == pattern(2, at, 1))
"""Where the write 1, moved by `DISTANCE`, and the write 2 have the same byte."""


def file(*segments: Segment) -> Entry:
    return Entry("a", "file", size=segments[-1].end, segments=segments)


@pytest.mark.parametrize(("source", "wanted"), [("write:2", MOVED), (MOVED, "write:2")])
def test_a_byte_that_is_the_same_is_as_good(source: str, wanted: str) -> None:
    entry = file(Segment(0, SAME, "zero"), Segment(SAME, SAME + 1, source), Segment(SAME + 1, SAME + 20, wanted))
    assert all_from(entry, SAME, SAME + 20, {wanted})
    assert not all_from(entry, SAME, SAME + 20, {"write:3", "zero"})
    assert not all_from(entry, SAME - 1, SAME + 20, {wanted})


def test_a_byte_that_differs_is_not() -> None:
    other = next(at for at in range(SAME + 1, SAME + 99) if pattern(1, at - DISTANCE, 1) != pattern(2, at, 1))
    entry = file(Segment(0, other, "zero"), Segment(other, other + 1, "write:2"))
    assert not all_from(entry, other, other + 1, {MOVED})


@pytest.mark.parametrize("source", ["other", "stale", "zero", "write:255", f"write:2+{SAME + 1}"])
def test_other_sources_are_only_themselves(source: str) -> None:
    entry = file(Segment(0, SAME, "zero"), Segment(SAME, SAME + 1, source))
    assert all_from(entry, SAME, SAME + 1, {source})
    assert not all_from(entry, SAME, SAME + 1, {MOVED, "write:2", None})
