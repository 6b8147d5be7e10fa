"""The foreign-bytes checker: bytes of free space and of other files, at other places, and in choices."""

import pytest

from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.model import Entry, History, Observation, Segment, Tree, UndecidedBytes, every_answer, parse_workload

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


def is_foreign(operations: str, entry: Entry) -> bool:
    workload = parse_workload(operations.replace("; ", "\n"), "litmus")
    count = len(workload.operations)
    tree = Tree([Entry(".", "dir"), entry])
    return ForeignBytes().check(History(workload, count, count), Observation(0, tree)) is not None


@pytest.mark.parametrize(("operations", "path", "runs", "expected"), ROWS)
def test_litmus(operations: str, path: str, runs: list[tuple[int, int, str]], expected: bool) -> None:
    segments = tuple(Segment(*run) for run in runs)
    assert is_foreign(operations, Entry(path, "file", size=segments[-1].end, segments=segments)) == expected


def test_a_choice_is_asked_for_each_of_its_versions() -> None:
    versions = tuple((Segment(0, 10, source),) for source in ("write:0", "zero", "stale"))
    entry = Entry("a", "file", size=10, choices=(UndecidedBytes(0, 10, 3, versions),))
    answers = list(every_answer(lambda: is_foreign("creat a; append a 10", entry)))
    assert answers == [(False, {3: 0}), (True, {3: 2})]
