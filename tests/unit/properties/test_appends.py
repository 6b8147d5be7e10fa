"""Which appends P2 and P3 are about: those to a file that nothing else changes, and that nobody can mistake."""

import pytest

from postcrash.model import History
from postcrash.properties.appends import Append, sole_appends
from postcrash.properties.family import family

WORDS = ("append", "write", "dwrite")


def found(setup: str, operations: str, *words: str) -> tuple[Append, ...]:
    (workload,) = family(("case", setup, operations))
    return sole_appends(History(workload, 0, 0), words or WORDS)


def test_an_append_has_its_place_in_the_workload_and_in_the_file() -> None:
    (append,) = found("creat b; creat a; append a 100", "fsync b; append a 50")
    assert append == Append(4, 3, "a", names=("a",), is_kept=True, start=100, end=150, source="write:1")


@pytest.mark.parametrize(
    ("operation", "count"),
    [("append a 5", 1), ("write a 100 5", 1), ("write a 99 5", 0), ("write a 101 5", 0), ("write a 0 100", 0)],
)
def test_a_write_is_an_append_if_it_begins_where_the_file_ends(operation: str, count: int) -> None:
    assert len(found("creat a; append a 100", operation)) == count


def test_only_the_words_that_are_asked_for_count() -> None:
    assert len(found("creat a; creat b", "append a 5; write b 0 5")) == 2
    assert [append.path for append in found("creat a; creat b", "append a 5; write b 0 5", "append")] == ["a"]


@pytest.mark.parametrize(
    "operations",
    [
        "append a 5; append a 5",
        "truncate a 3; append a 5",
        "append a 5; truncate a 0",
        "append a 5; write-osync a 0 1",
        "append a 5; link a c; append c 1",
        "append a 5; rename a c; mmapwrite c 0 1",
        "append a 5; reflink b 0 a 0 4096",
        "open a; append a 5; write @a 0 1",
    ],
)
def test_an_append_is_not_the_only_one_if_something_else_changes_the_file(operations: str) -> None:
    assert found("creat a; creat b; append b 4096", operations, "append") == ()


@pytest.mark.parametrize(
    "operations",
    [
        "append a 5; fsync a; setxattr a user.x y",
        "append a 5; append b 5; truncate b 0",
        "append a 5; reflink a 0 b 0 4096",
    ],
)
def test_what_leaves_the_contents_alone_or_changes_another_file_is_no_hindrance(operations: str) -> None:
    assert [append.path for append in found("creat a; append a 8192; creat b; append b 4096", operations, "append")][
        :1
    ] == ["a"]


def test_what_the_set_up_did_to_the_file_does_not_matter() -> None:
    assert len(found("creat a; append a 5; truncate a 2; rename a b; rename b a", "append a 5")) == 1


def test_an_append_through_a_handle_is_left_out() -> None:
    assert found("creat a", "open a; write @a 0 5") == ()


@pytest.mark.parametrize(
    ("operations", "names", "is_kept"),
    [
        ("append a 5; link a b", ("a", "b"), True),
        ("append a 5; rename a b", ("a", "b"), False),
        ("append a 5; unlink a", ("a",), False),
        ("append a 5; link a b; unlink b", ("a", "b"), True),
        ("append a 5; rename a b; rename b a", ("a", "b"), False),
        ("append a 5; link a b; unlink b; creat b", ("a",), True),
        ("append a 5; link a D/b", ("D/b", "a"), True),
        ("append a 5; link a D/b; rename D E", ("a",), True),
    ],
)
def test_names_that_can_only_be_the_file_s(operations: str, names: tuple[str, ...], is_kept: bool) -> None:
    (append,) = found("creat a; mkdir D", operations, "append")
    assert (append.names, append.is_kept) == (names, is_kept)


@pytest.mark.parametrize(
    "operations",
    [
        "append a 5; unlink a; creat a",
        "append a 5; creat b; rename b a",
        "unlink a; creat a; append a 5",
    ],
)
def test_an_append_under_a_name_that_was_another_file_s_is_left_out(operations: str) -> None:
    assert found("creat a", operations, "append") == ()


def test_an_append_in_a_directory_that_moves_is_left_out() -> None:
    assert found("mkdir D; creat D/a", "append D/a 5; rename D E") == ()
    assert len(found("mkdir D; creat D/a", "append D/a 5; mkdir E")) == 1
