"""Flushes of two runs are the same only if each is the same call about the same file."""

import pytest

from postcrash.apps.protocol import Protocol, Step
from postcrash.apps.protocol.trace import FlushedRange
from postcrash.harness.auditing.flushes import Flush, flush_difference, flushes_of


def flushes(*texts: str) -> list[Flush]:
    """Of texts such as `fsync a` or `sync`."""
    found = []
    for text in texts:
        call, _, name = text.partition(" ")
        found.append(Flush(call, frozenset(filter(None, [name])), text))
    return found


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ((), ()),
        (("fsync a", "sync", "fdatasync ."), ("fsync a", "sync", "fdatasync .")),
        (("fsync tmp1", "fsync .", "fsync tmp1"), ("fsync tmp2", "fsync .", "fsync tmp2")),
    ],
)
def test_the_same(expected: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert flush_difference(flushes(*expected), flushes(*found)) == ""


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        (("fsync a",), ("fdatasync a",), "flush 1 is fdatasync a, and not fsync a"),
        (("fsync f", "fsync g"), ("fsync g", "fsync f"), "flush 1 is fsync g, and not fsync f"),
        (("fsync f", "fsync f"), ("fsync g", "fsync f"), "flush 1 is fsync g, and not fsync f"),
        (("fsync t1", "fsync t1"), ("fsync t2", "fsync t3"), "flush 2 is fsync t3, and not fsync t1"),
        (("sync",), ("sync", "sync"), "it makes 2 flushes, and not 1"),
        (("fsync a", "sync"), ("fsync a",), "it makes 1 flushes, and not 2"),
        (("syncfs",), ("fsync .",), "flush 1 is fsync ., and not syncfs"),
    ],
)
def test_others(expected: tuple[str, ...], found: tuple[str, ...], told: str) -> None:
    assert flush_difference(flushes(*expected), flushes(*found)) == told


def test_only_calls_that_do_nothing_else_can_be_left_out() -> None:
    def step(number: int, call: str) -> Step:
        durable = () if call in ("write", "rename", "sync") else (FlushedRange(2, 0, None, own=False),)
        return Step(number, call, "a, b", 0, 0, durable, everything=call == "sync", outputs=(), known=0)

    calls = ("write", "fsync", "pwritev2", "fdatasync", "rename", "sync", "msync")
    found = flushes_of(Protocol(1, {}, {}, tuple(map(step, range(len(calls)), calls)), ()))
    assert [(each.number, flush.call, set(flush.names)) for each, flush in found] == [
        (1, "fsync", {"a", "b"}),
        (3, "fdatasync", {"a", "b"}),
        (5, "sync", set()),
        (6, "msync", {"a", "b"}),
    ]
