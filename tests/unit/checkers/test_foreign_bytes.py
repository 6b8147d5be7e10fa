"""The foreign-bytes checker: bytes of free space and of other files, at other places, and in choices."""

from dataclasses import replace

import pytest

from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.model import (
    Entry,
    History,
    Observation,
    Segment,
    Tree,
    UndecidedBytes,
    Verdict,
    every_answer,
    parse_workload,
)

# workload, name, the sources of its bytes (start, end, source), whether these are foreign
ROWS = [
    ("creat a; append a 10", "a", [(0, 10, "write:0")], False),
    ("creat a; append a 10", "a", [(0, 10, "zero")], False),
    ("creat a; append a 10", "a", [(0, 10, "other")], True),
    ("creat a; append a 10", "a", [(0, 4, "write:0"), (4, 10, "stale")], True),
    ("creat a; append a 10; creat b; append b 10", "b", [(0, 10, "write:0")], True),
    ("creat a; append a 10; creat b; append b 10; exchange a b", "b", [(0, 10, "write:0")], False),
    ("creat a; append a 10; creat b; append b 10; rename a b", "b", [(0, 10, "write:1")], False),
    ("creat a; append a 10; link a b", "b", [(0, 10, "write:0")], False),
    ("creat a; append a 10; append a 10", "a", [(0, 20, "write:0")], True),
    ("creat a; append a 10; append a 10", "a", [(0, 20, "write:1")], True),
    ("creat a; append a 10; truncate a 0; append a 20", "a", [(0, 20, "write:1")], False),
    ("creat a; append a 10; truncate a 0; append a 20", "a", [(0, 10, "write:0"), (10, 20, "write:1")], False),
    ("creat a; append a 8K; creat b; reflink a 4K b 0 4K", "b", [(0, 4096, "write:0-4096")], False),
    ("creat a; append a 8K; creat b; reflink a 4K b 0 4K", "b", [(0, 4096, "write:0")], True),
    ("creat a; append a 8K; fallocate a collapse-range 0 4K", "a", [(0, 8192, "write:0")], False),
    ("creat a; append a 8K", "a", [(0, 4096, "write:0-4096"), (4096, 8192, "write:0")], True),
    ("creat a; append a 10", "a", [(0, 10, "write:7")], True),
    ("creat a; append a 10", "a", [(0, 4, "write:0"), (4, 10, "error:5")], False),
    ("creat a; append a 10", "c", [(0, 10, "stale")], False),
]

REPLACED = "creat b; write b 0 32K; creat a; write a 0 32K; rename a b"
AGAIN = "creat b; write b 0 32K; unlink b; creat b; write b 0 32K"
HALVES = [(0, 16384, "write:0"), (16384, 32768, "write:1")]
SHARED = "creat b; write b 0 32K; creat a; write a 0 32K; reflink b 0 a 0 16K; rename a b"
MOVED = "creat b; write b 0 32K; creat a; reflink b 16K a 0 16K; write a 16K 16K; rename a b"
SHIFTED = "creat b; write b 0 32K; unlink b; creat b; write b 0 32K; fallocate b collapse-range 0 4K; write b 0 4K"

# The same for names that several files had, one after the other. Bytes of two files are foreign to each of them.
SEVERAL = [
    (REPLACED, "b", [(0, 32768, "write:0")], False),
    (REPLACED, "b", [(0, 32768, "write:1")], False),
    (REPLACED, "b", HALVES, True),
    (REPLACED, "b", [(0, 16384, "write:1"), (16384, 32768, "write:0")], True),
    (REPLACED, "b", [(0, 16384, "zero"), (16384, 32768, "write:1")], False),
    (REPLACED, "b", [(0, 16384, "write:0"), (16384, 32768, "zero")], False),
    (REPLACED, "b", [(0, 16384, "write:0"), (16384, 32768, "error:5")], False),
    (REPLACED, "b", [(0, 16384, "write:0"), (16384, 32768, "stale")], True),
    (REPLACED, "a", [(0, 32768, "write:0")], True),
    (AGAIN, "b", [(0, 32768, "write:0")], False),
    (AGAIN, "b", HALVES, True),
    # The new file shares blocks of the old one, at the same place and at another one.
    (SHARED, "b", HALVES, False),
    (SHARED, "b", [(0, 8192, "write:1"), (8192, 16384, "write:0"), (16384, 32768, "write:1")], False),
    (SHARED, "b", [(0, 16384, "write:1"), (16384, 32768, "write:0")], True),
    (MOVED, "b", [(0, 16384, "write:0-16384"), (16384, 32768, "write:1")], False),
    (MOVED, "b", HALVES, True),
    # Each name can stand for each of two files, and for none of their mixtures.
    ("creat a; write a 0 32K; creat b; write b 0 32K; exchange a b", "a", [(0, 32768, "write:1")], False),
    ("creat a; write a 0 32K; creat b; write b 0 32K; exchange a b", "a", [(0, 32768, "write:0")], False),
    ("creat a; write a 0 32K; creat b; write b 0 32K; exchange a b", "a", HALVES, True),
    ("creat a; write a 0 32K; creat b; write b 0 32K; exchange a b; write a 0 16K", "a", HALVES, True),
    (
        "creat a; write a 0 32K; creat b; write b 0 32K; exchange a b; write a 0 16K",
        "a",
        [(0, 16384, "write:2"), (16384, 32768, "write:1")],
        False,
    ),
    # A shift that is lost, and a later write that is not
    (SHIFTED, "b", [(0, 4096, "write:1"), (4096, 8192, "write:2+4096"), (8192, 32768, "write:1")], False),
    (SHIFTED, "b", [(0, 4096, "write:0"), (4096, 8192, "write:2+4096"), (8192, 32768, "write:1")], True),
    ("creat b; write b 0 32K; unlink b; creat a; write a 0 32K; link a b", "b", HALVES, True),
    ("mkdir D; creat D/b; write D/b 0 32K; rename D E; mkdir D; creat D/b; write D/b 0 32K", "D/b", HALVES, True),
]


def is_foreign(operations: str, entry: Entry) -> bool:
    return bool(message_of(operations, entry))


def message_of(operations: str, entry: Entry) -> str:
    workload = parse_workload(operations.replace("; ", "\n"), "litmus")
    count = len(workload.operations)
    tree = Tree([Entry(".", "dir"), entry])
    objection = ForeignBytes().examine(History(workload, count, count), Observation(0, tree))
    return objection.message


@pytest.mark.parametrize(("operations", "path", "runs", "expected"), ROWS + SEVERAL)
def test_litmus(operations: str, path: str, runs: list[tuple[int, int, str]], expected: bool) -> None:
    segments = tuple(Segment(*run) for run in runs)
    assert is_foreign(operations, Entry(path, "file", size=segments[-1].end, segments=segments)) == expected


def test_a_choice_is_asked_for_each_of_its_versions() -> None:
    versions = tuple((Segment(0, 10, source),) for source in ("write:0", "zero", "stale"))
    entry = Entry("a", "file", size=10, choices=(UndecidedBytes(0, 10, 3, versions),))
    answers = list(every_answer(lambda: is_foreign("creat a; append a 10", entry)))
    assert answers == [(False, {3: 0}), (True, {3: 2})]


def test_a_choice_may_be_of_the_old_file_or_of_the_new_one_like_the_rest() -> None:
    versions = tuple((Segment(0, 16384, source),) for source in ("write:0", "zero", "write:1"))
    rest = (Segment(16384, 32768, "write:1"),)
    entry = Entry("b", "file", size=32768, segments=rest, choices=(UndecidedBytes(0, 16384, 3, versions),))
    answers = list(every_answer(lambda: is_foreign(REPLACED, entry)))
    assert dict(answers) == {True: {3: 0}, False: {3: 1}}


SHORT = "creat b; setxattr b user.k v; creat a; write a 0 100; rename a b"


def test_bytes_size_and_attributes_must_be_of_one_file() -> None:
    runs, attribute = (Segment(0, 100, "write:0"),), (("user.k", "76"),)
    new = Entry("b", "file", size=100, segments=runs)
    assert not is_foreign(SHORT, new)
    assert not is_foreign(SHORT, Entry("b", "file", xattrs=attribute))
    # That b of 100 bytes never had the attribute is said by never-written.
    assert not is_foreign(SHORT, Entry("b", "file", size=100, segments=runs, xattrs=attribute))
    bigger = SHORT.replace("setxattr", "truncate b 100; setxattr")
    assert is_foreign(bigger, Entry("b", "file", size=100, segments=runs, xattrs=attribute))
    assert not is_foreign(bigger, new)


BYTES_AGAIN = "creat b; write b 0 10; unlink b; sync; creat b; write b 0 10"


def test_bytes_of_a_file_that_lost_the_name_for_good_are_foreign() -> None:
    old, new = (Entry("b", "file", size=10, segments=(Segment(0, 10, f"write:{number}"),)) for number in range(2))
    assert message_of(BYTES_AGAIN, old) == (
        "sync (operation 4) had returned, but b is 10 bytes long; of its bytes, 0 to 10 are those of write b 0 10; "
        "what the name stands for since then never had all of them"
    )
    assert not is_foreign(BYTES_AGAIN, new)
    assert not is_foreign(BYTES_AGAIN, replace(new, segments=(Segment(0, 10, "zero"),)))
    assert not is_foreign(BYTES_AGAIN.replace("sync; ", ""), old)
    assert not is_foreign(f"{BYTES_AGAIN}; unlink b; sync", old)
    # never-written says that this was never a directory, or never so long.
    assert not is_foreign("creat b; write b 0 10; unlink b; sync; mkdir b", old)
    assert not is_foreign("creat b; write b 0 10; unlink b; sync; creat b; write b 0 5", old)
    stale = Entry("b", "file", size=10, segments=(Segment(0, 10, "stale"),))
    assert message_of(BYTES_AGAIN, stale).startswith("b is 10 bytes long")


def test_a_sync_that_has_not_returned_took_no_name_away_for_good() -> None:
    workload = parse_workload(BYTES_AGAIN.replace("; ", "\n"), "litmus")
    old = Entry("b", "file", size=10, segments=(Segment(0, 10, "write:0"),))
    found = Observation(0, Tree([Entry(".", "dir"), old]))
    assert ForeignBytes().examine(History(workload, 4, 3), found).verdict is Verdict.HOLDS
    assert ForeignBytes().examine(History(workload, 6, 6), found).verdict is Verdict.VIOLATED


def test_the_message_tells_a_mixture_from_bytes_that_no_file_had() -> None:
    mixed = Entry("b", "file", size=32768, segments=tuple(Segment(*run) for run in HALVES))
    assert message_of(REPLACED, mixed) == (
        "b is 32768 bytes long; of its bytes, 0 to 16384 are those of write b 0 32768, 16384 to 32768 are those of "
        "write a 0 32768; several files had this name, but none ever had all these bytes with this size and attributes"
    )
    stale = Entry("b", "file", size=10, segments=(Segment(0, 10, "stale"),))
    assert message_of(REPLACED, stale) == (
        "b is 10 bytes long; of its bytes, 0 to 10 are stale, from free space; no operation put all of them there"
    )
