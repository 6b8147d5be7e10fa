"""Files full of zeros that never were."""

import pytest

from postcrash.checkers.null_files import NullFiles
from postcrash.model import Entry, History, Observation, Segment, Tree, parse_workload

ROOT = Entry(".", "dir", inode=1)
WRITTEN = "creat a; ---; append a 4096"


def zeros(size: int) -> tuple[Segment, ...]:
    return (Segment(0, size, "zero"),) if size else ()


def found(operations: str, *segments: Segment, path: str = "a", error: int = 0) -> str:
    """What is said of a file of these bytes when the last operation is running."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    started = len(workload.operations)
    size = segments[-1].end if segments else 0
    file = Entry(path, "file", inode=2, size=size, segments=segments, error=error)
    history, observation = History(workload, started, started - 1), Observation(0, Tree([ROOT, file]))
    opinion = NullFiles().examine(history, observation)
    assert opinion.relevant or not opinion.message
    return opinion.message


def test_a_size_without_any_of_the_data_is_a_null_file() -> None:
    said = "a is 8192 bytes long and full of zeros, but whenever it had a size it had data"
    assert found(f"{WRITTEN}; truncate a 8192; fsync .", *zeros(8192)) == said
    assert found(f"{WRITTEN}; truncate a 8192", *zeros(8192)) == said
    assert found("creat a; write a 0 64K; truncate a 32K", *zeros(32_768))
    assert found("creat a; write a 0 64K; truncate a 64K", *zeros(512))
    assert found(f"{WRITTEN}; link a b; truncate a 8192", *zeros(8192), path="b")
    assert found(f"{WRITTEN}; rename a b; truncate b 8192", *zeros(8192), path="b")
    assert found("creat a; ---; write a 0 4096; write a 8192 4096", *zeros(12_288))


@pytest.mark.parametrize(
    "operations",
    [
        "creat a",
        "creat a; truncate a 8192; append a 4096",
        "creat a; fallocate a none 0 8192; write a 0 4096",
        "creat a; write a 4096 4096",
        f"{WRITTEN}; fallocate a zero-range 0 4096; truncate a 8192",
        f"{WRITTEN}; fallocate a punch-hole 0 4096; append a 4096",
        f"{WRITTEN}; truncate a 0; append a 8192",
        "creat b; truncate b 8192; creat a; append a 8192; rename b a",
        "creat a; ---; mmapwrite a 0 8192",
        "creat a; ---; open a; rename a b; mmapwrite @a 0 8192; rename b a",
        "creat a; write a 4096 4096; ---; write a 0 4096; fallocate a punch-hole 4096 4096",
    ],
)
def test_a_file_that_was_full_of_zeros_may_be(operations: str) -> None:
    assert found(operations, *zeros(4096)) == ""


@pytest.mark.parametrize(
    "before",
    [
        "creat a; ---; creat b; append b 4096; rename b a",
        "creat a; truncate a 100; ---; creat b; append b 4096; rename b a",
        "mkdir a; ---; rmdir a; creat a; append a 4096",
        "symlink x a; ---; unlink a; creat a; append a 4096",
    ],
)
def test_what_cannot_be_the_file_is_no_excuse(before: str) -> None:
    """Something else that had the name, was never so long, or was no file."""
    assert found(before, *zeros(4096))


def test_what_a_store_through_a_mapping_did_not_make_longer_is_no_excuse() -> None:
    for operations in (
        "creat a; append a 8192; mmapwrite a 0 4096",
        "creat a; append a 4096; mmapwrite a 4096 4096",
        "creat a; creat b; append a 8192; mmapwrite b 0 8192",
    ):
        assert found(operations, *zeros(8192))


def test_only_a_file_with_a_size_and_nothing_but_zeros_is_one() -> None:
    assert found(WRITTEN) == ""
    assert found(WRITTEN, Segment(0, 4096, "w2")) == ""
    assert found(f"{WRITTEN}; truncate a 8192", Segment(0, 4000, "zero"), Segment(4000, 4096, "w2")) == ""
    assert found(WRITTEN, *zeros(4096), path="nobody") == ""
    assert found(WRITTEN, *zeros(4096), error=5) == ""


def test_the_question_is_put_only_where_a_file_has_a_size_that_comes_with_data() -> None:
    def relevant(operations: str, size: int) -> bool:
        workload = parse_workload(operations.replace("; ", "\n"), "case")
        count, file = len(workload.operations), Entry("a", "file", inode=2, size=size, segments=zeros(size))
        return NullFiles().examine(History(workload, count, count), Observation(0, Tree([ROOT, file]))).relevant

    assert relevant(WRITTEN, 4096)
    assert not relevant(WRITTEN, 0)
    assert not relevant("creat a; truncate a 4096", 4096)
