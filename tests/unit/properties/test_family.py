"""Rows of a family become workloads whose names tell how they end."""

import pytest

from postcrash.model import WorkloadError
from postcrash.properties.family import D_AND_E, PUSHED, endings, family


def test_a_row_is_a_name_a_set_up_and_recorded_operations() -> None:
    first, second = family(("one", D_AND_E, "creat D/a; fsync D/a"), ("two", "", "creat a"))
    assert (first.name, first.to_text()) == ("one", "mkdir D\nmkdir E\n---\ncreat D/a\nfsync D/a\n")
    assert (second.name, second.to_text()) == ("two", "creat a\n")
    assert [str(operation) for operation in first.ops] == ["creat D/a", "fsync D/a"]
    assert second.setup == ()


def test_a_family_is_parsed_once() -> None:
    assert family(("one", "", "creat a")) is family(("one", "", "creat a"))
    assert family() == ()


@pytest.mark.parametrize("row", [("one", "", "creat"), ("one", "", ""), ("one", "creat", "creat a")])
def test_a_row_that_is_no_workload_is_refused(row: tuple[str, str, str]) -> None:
    with pytest.raises(WorkloadError):
        family(row)


def test_each_ending_gives_a_row_of_its_own_behind_the_one_without() -> None:
    assert endings("x", "creat a", "append a 1", "fsync a", "sync; fsync .") == (
        ("x", "creat a", "append a 1"),
        ("x-fsync-a", "creat a", "append a 1; fsync a"),
        ("x-sync-fsync-root", "creat a", "append a 1; sync; fsync ."),
    )
    assert endings("x", "", "creat a") == (("x", "", "creat a"),)


def test_no_name_of_an_ending_has_a_slash_or_a_dot() -> None:
    (_, *rows) = endings("x", "", "creat D/a", "fsync D/a", "fsync .", *PUSHED)
    assert [name for name, _, _ in rows] == [
        *("x-fsync-D-a", "x-fsync-root"),
        *("x-writeback-a", "x-commit-writeback-a", "x-fsync-a"),
    ]
