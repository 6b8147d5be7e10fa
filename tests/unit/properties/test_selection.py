"""Which operations of a workload a property applies to, and how operations that write are told apart."""

import pytest

from postcrash.model import FORMS, Workload
from postcrash.model.history import trees_of
from postcrash.properties.family import family
from postcrash.properties.selection import (
    ALL,
    ATTRIBUTES,
    BUFFERED,
    DIRECTORY,
    UNMAPPED,
    WRITING,
    Test,
    both,
    file_of,
    is_append,
    is_overwrite,
    is_within,
    negation,
    operations,
    pairs,
    span,
)


def workload_of(recorded: str, setup: str = "") -> Workload:
    (workload,) = family(("case", setup, recorded))
    return workload


def words(workload: Workload, groups: tuple[tuple[int, ...], ...]) -> list[list[str]]:
    return [[str(workload.operations[index]) for index in group] for group in groups]


def test_the_set_up_is_left_out_and_each_operation_is_a_group_of_its_own() -> None:
    workload = workload_of("append a 5; fsync a; append a 7; write a 0 2", "creat a; append a 3")
    assert operations("append")(workload) == ((2,), (4,))
    assert words(workload, operations("append", "write")(workload)) == [["append a 5"], ["append a 7"], ["write a 0 2"]]
    assert operations("rename")(workload) == operations()(workload) == ()


def test_operations_on_a_handle_are_left_out() -> None:
    workload = workload_of("open a; write a 0 5; write @a 0 5; fsync @a", "creat a")
    assert words(workload, operations("write", "fsync")(workload)) == [["write a 0 5"]]


def test_a_condition_sees_the_tree_before_the_operation() -> None:
    workload = workload_of("append a 10; append a 10; append a 10", "creat a")
    assert operations("append", where=lambda operation, tree: tree[operation.path].size == 10)(workload) == ((2,),)
    assert operations("append", where=negation(lambda operation, tree: tree["a"].size == 10))(workload) == ((1,), (3,))


def test_each_is_paired_with_the_next_one_on_the_same_file() -> None:
    workload = workload_of(
        "append a 1; append b 1; append a 2; fsync b; fsync a; fsync a; append a 3", "creat a; creat b"
    )
    pair = pairs(operations("append"), operations("fsync"))
    assert pair(workload) == ((2, 6), (3, 5), (4, 6))


def test_a_pair_is_of_one_file_though_it_was_renamed_in_between() -> None:
    workload = workload_of("append a 1; rename a b; creat a; fsync a; fsync b", "creat a")
    assert pairs(operations("append"), operations("fsync"))(workload) == ((1, 5),)


def test_an_operation_is_no_pair_with_itself_or_with_what_came_before() -> None:
    workload = workload_of("fsync a; append a 1; append a 2", "creat a")
    assert pairs(operations("append"), operations("fsync"))(workload) == ()
    assert pairs(operations("append"), operations("append"))(workload) == ((2, 3),)


def test_the_file_of_an_operation_is_what_it_makes_or_what_was_there() -> None:
    workload = workload_of("creat a; append a 1; unlink a; creat a; rename a b; sync; symlink gone s")
    assert [file_of(workload, index) for index in range(7)] == [2, 2, 2, 5, 5, None, 8]
    swapped = workload_of("exchange a b", "creat a; creat b")
    assert file_of(swapped, 2) == 2


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("append a 5", (100, 105)),
        ("write a 20 5", (20, 25)),
        ("write a 100 5", (100, 105)),
        ("mmapwrite a 0 7", (0, 7)),
    ],
)
def test_bytes_of_an_append_begin_where_the_file_ends(operation: str, expected: tuple[int, int]) -> None:
    workload = workload_of(operation, "creat a; append a 100")
    assert span(workload.operations[2], trees_of(workload)[2]) == expected


@pytest.mark.parametrize(
    ("operation", "overwrites", "appends"),
    [
        ("write a 0 100", True, False),
        ("write a 99 1", True, False),
        ("write a 99 2", False, False),
        ("write a 100 1", False, True),
        ("write a 101 1", False, False),
        ("append a 1", False, True),
    ],
)
def test_a_write_over_the_end_is_neither_an_overwrite_nor_an_append(
    operation: str, overwrites: bool, appends: bool
) -> None:
    assert holds(is_overwrite, operation) == overwrites
    assert holds(is_append, operation) == appends
    assert holds(both(is_overwrite, is_append), operation) is False
    assert holds(both(is_overwrite, negation(is_append)), operation) == overwrites
    assert holds(both(), operation)


def holds(test: Test, operation: str) -> bool:
    """Of an operation on a file of 100 bytes."""
    workload = workload_of(operation, "creat a; append a 100")
    return bool(operations(*FORMS, where=test)(workload))


@pytest.mark.parametrize(
    ("operation", "unit", "expected"),
    [
        ("write a 0 512", 512, True),
        ("write a 0 513", 512, False),
        ("write a 511 1", 512, True),
        ("write a 511 2", 512, False),
        ("write a 512 512", 512, True),
        ("append a 412", 512, True),
        ("append a 413", 512, False),
        ("write a 4096 4096", 4096, True),
    ],
)
def test_bytes_that_end_with_their_unit_lie_within_it(operation: str, unit: int, expected: bool) -> None:
    assert holds(is_within(unit), operation) == expected


def test_groups_of_words_are_what_their_names_say() -> None:
    assert DIRECTORY == ("mkdir", "rmdir", "creat", "mknod", "link", "symlink", "unlink", "rename")
    assert BUFFERED == ("write", "append", "write-osync", "write-odsync")
    assert set(WRITING) - set(UNMAPPED) == {"mmapwrite"}
    untorn = {"awrite", "awrite-odsync"}
    assert set(WRITING) == {"write", "append", "dwrite", "mmapwrite", "write-osync", "write-odsync", *untorn}
    assert ATTRIBUTES == ("setxattr", "removexattr")
    assert set(ALL) == {*DIRECTORY, *WRITING, *ATTRIBUTES, "exchange", "truncate", "fallocate", "reflink"}
