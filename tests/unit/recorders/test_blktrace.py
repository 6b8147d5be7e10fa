"""Traces of blktrace that were made by hand, sound and damaged."""

import random
import struct
import time
from collections.abc import Iterator

import pytest

from ...blktrace import BlktraceError, Level, read_blktrace, read_events

MAGIC = 0x65617407
QUEUE, REQUEUE, INSERT, ISSUE, COMPLETE, SPLIT = 1, 5, 6, 7, 8, 13
READ, WRITE, FLUSH, SYNC, NOTIFY, META, DISCARD, FUA, ZEROES = (
    1 << (16 + bit) for bit in (0, 1, 2, 3, 10, 12, 13, 15, 22)
)
PROCESS, MESSAGE = 0, 2
CGROUP = 1 << 8


class Log:
    """Events of one CPU."""

    def __init__(self, cpu: int = 0, order: str = "<") -> None:
        self.cpu, self.order, self.content = cpu, order, b""
        self.sequence = 0

    def add(
        self, time: int, action: int, sector: int = 0, size: int = 0, extra: bytes = b"", magic: int = MAGIC
    ) -> "Log":
        self.sequence += not action & NOTIFY
        fields = (
            magic,
            0 if action & NOTIFY else self.sequence,
            time,
            sector,
            size,
            action,
            7,
            0xFD00000,
            self.cpu,
            0,
            len(extra),
        )
        self.content += struct.pack(self.order + "IIQQIIIIIHH", *fields) + extra
        return self

    def add2(self, time: int, action: int, sector: int = 0, size: int = 0, extra: bytes = b"") -> "Log":
        """An event of the format that Linux has had since 6.19."""
        self.sequence += not action & NOTIFY
        fields = MAGIC + 1, self.sequence, time, sector, size, 7, action, 0xFD00000, self.cpu, 0, len(extra)
        self.content += struct.pack("<IIQQIIQIIHH12x", *fields) + extra
        return self


def shown(content: bytes, level: Level = "issued") -> Iterator[tuple[object, ...]]:
    for request in read_blktrace(content, level).requests:
        flags = "F" * request.preflush + "A" * request.fua
        yield request.kind, request.sector, request.sectors, flags, request.submitted, request.completed


def test_what_was_asked_for_and_what_the_driver_got() -> None:
    log = Log().add(1, QUEUE | WRITE | FLUSH | SYNC | FUA, 64, 8192).add(2, SPLIT | WRITE, 64, 8192)
    log.add(3, ISSUE | READ | FLUSH).add(4, COMPLETE | READ | FLUSH)
    log.add(5, ISSUE | WRITE | SYNC, 64, 4096).add(6, ISSUE | WRITE | SYNC, 72, 4096)
    log.add(7, COMPLETE | WRITE | SYNC, 72, 4096).add(8, COMPLETE | WRITE | SYNC, 64, 4096)
    log.add(9, ISSUE | WRITE | DISCARD, 0, 1 << 20).add(10, ISSUE | READ | META, 8, 4096)
    assert list(shown(log.content, "queued")) == [("write", 64, 16, "FA", 0, None)]
    assert list(shown(log.content)) == [
        ("flush", 0, 0, "", 2, 3),
        ("write", 64, 8, "", 4, 7),
        ("write", 72, 8, "", 5, 6),
        ("discard", 0, 2048, "", 8, None),
    ]


def test_the_newer_format_tells_write_zeroes_from_writes() -> None:
    log = Log().add2(1, QUEUE | WRITE | FUA, 64, 8192).add2(2, NOTIFY | MESSAGE, extra=b"postcrash started 1")
    log.add2(3, QUEUE | WRITE | ZEROES | SYNC, 8, 4096, b"x" * 3).add2(4, QUEUE | WRITE, 8, 4096)
    assert list(shown(log.content, "queued")) == [
        ("write", 64, 16, "A", 0, None),
        ("write-zeroes", 8, 8, "", 2, None),
        ("write", 8, 8, "", 3, None),
    ]
    assert [mark.position for mark in read_blktrace(log.content).marks] == [1]


def test_a_request_that_goes_back_to_the_queue_counts_once() -> None:
    log = Log().add(1, ISSUE | WRITE, 8, 512).add(2, REQUEUE | WRITE, 8, 512).add(3, ISSUE | WRITE, 8, 512)
    assert list(shown(log.add(4, COMPLETE | WRITE, 8, 512).content)) == [("write", 8, 1, "", 2, 3)]


def test_a_request_that_is_inserted_again_counts_once() -> None:
    log = Log().add(1, ISSUE | WRITE, 8, 512).add(2, INSERT | WRITE, 8, 512).add(3, ISSUE | WRITE, 8, 512)
    assert list(shown(log.add(4, COMPLETE | WRITE, 8, 512).content)) == [("write", 8, 1, "", 2, 3)]
    twice = log.add(5, COMPLETE | WRITE, 8, 512).content
    assert [submitted for *_, submitted, _ in shown(twice)] == [0, 2]


def test_equal_requests_complete_in_the_order_of_their_issue() -> None:
    log = Log().add(1, ISSUE | WRITE, 8, 512).add(2, ISSUE | WRITE, 8, 512).add(3, COMPLETE | WRITE, 8, 512)
    assert [completed for *_, completed in shown(log.content)] == [2, None]


def test_cpus_are_merged_by_time() -> None:
    first = Log(0).add(10, ISSUE | WRITE, 0, 512).add(30, COMPLETE | WRITE, 0, 512)
    second = Log(1).add(20, ISSUE | WRITE, 8, 512).add(40, COMPLETE | WRITE, 8, 512)
    expected = [("write", 0, 1, "", 0, 2), ("write", 8, 1, "", 1, 3)]
    assert list(shown(first.content + second.content)) == list(shown(second.content + first.content)) == expected


def test_marks_are_the_agent_s_messages_and_nothing_else() -> None:
    log = (
        Log()
        .add(1, NOTIFY | PROCESS, extra=b"postcrash started 1")
        .add(2, NOTIFY | MESSAGE, extra=b"postcrash started 1\n")
    )
    log.add(3, NOTIFY | MESSAGE | CGROUP, extra=bytes(8) + b"postcrash returned 1")
    for text in (
        b"postcrash started x",
        b"postcrash ended 1",
        b"other started 1",
        b"",
        b"postcrash started 9999999999",
    ):
        log.add(4, NOTIFY | MESSAGE, extra=text)
    marks = read_blktrace(log.content).marks
    assert [(mark.word, mark.operation, mark.position) for mark in marks] == [("started", 1, 1), ("returned", 1, 2)]


GOOD = Log().add(1, ISSUE | WRITE, 8, 512, b"x" * 5).add(2, COMPLETE | WRITE, 8, 512).content


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"junk" * 12, "byte 0: not a trace of blktrace: 0x6b6e756a where an event should begin"),
        (Log(order=">").add(1, ISSUE | WRITE).content, "byte 0: a trace of a machine with the other byte order"),
        (
            Log().add(1, ISSUE | WRITE, magic=MAGIC - 1).content,
            "byte 0: version 6 of the format; versions 7 and 8 are read",
        ),
        (Log().add(1, ISSUE | WRITE, magic=MAGIC + 1).content, "byte 0: an event of 64 bytes is cut off"),
        (GOOD[:-1], "byte 53: an event of 48 bytes is cut off"),
        (GOOD[:50], "byte 48: 5 bytes of an event are cut off"),
        (
            Log().add(1, ISSUE | WRITE).content.replace(b"\1\0\0\0", b"\0\0\0\0", 1),
            "byte 0: event 0 of CPU 0 stands behind event 0",
        ),
        (GOOD + GOOD, "byte 101: event 1 of CPU 0 stands behind event 2"),
        (bytes((64 << 20) + 1), "a trace of 67108865 bytes; at most 67108864 are read"),
    ],
)
def test_what_is_no_trace_is_refused(content: bytes, expected: str) -> None:
    with pytest.raises(BlktraceError) as refused:
        read_blktrace(content)
    assert str(refused.value) == expected


def test_damaged_traces_are_read_or_refused() -> None:
    log = Log()
    for number in range(20):
        add = log.add if number % 3 else log.add2
        add(number, random.Random(number).choice([ISSUE, COMPLETE]) | WRITE, 8, 512, bytes(number))
    refused = 0
    for seed in range(2000):
        source = random.Random(seed)
        content = bytearray(log.content)
        for _ in range(source.randrange(1, 4)):
            content[source.randrange(len(content))] = source.randrange(256)
        del content[source.randrange(len(content)) :]
        refused += is_refused(bytes(content))
    assert 100 < refused < 2000


def is_refused(content: bytes) -> bool:
    try:
        read_blktrace(content)
    except BlktraceError:
        return True
    return False


def test_many_equal_requests_take_no_longer_than_their_number() -> None:
    issued = Log()
    one = [struct.pack("<IIQQIIIIIHH", MAGIC, i + 1, i, 8, 512, ISSUE | WRITE, 7, 0, 0, 0, 0) for i in range(20_000)]
    two = [
        struct.pack("<IIQQIIIIIHH", MAGIC, i + 1, i, 8, 512, COMPLETE | WRITE, 7, 0, 0, 0, 0)
        for i in range(20_000, 40_000)
    ]
    issued.content = b"".join(one + two)
    started = time.process_time()
    assert all(request.completed is not None for request in read_blktrace(issued.content).requests)
    assert time.process_time() - started < 10


def test_events_of_an_empty_trace() -> None:
    assert read_events(b"") == []
