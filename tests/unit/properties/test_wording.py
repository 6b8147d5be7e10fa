"""Messages say where an operation stands, and what is found where bytes should be."""

import pytest

from postcrash.model import Entry, Segment, parse_workload
from postcrash.properties.wording import operation_at, shown_bytes, shown_source

WORKLOAD = parse_workload("creat a\n---\nappend a 10\nwrite a 0 5\nfsync a", "case")


def test_operations_are_numbered_from_one_and_the_set_up_counts() -> None:
    assert [operation_at(WORKLOAD, index) for index in (0, 1, 3)] == [
        *("creat a (operation 1)", "append a 10 (operation 2)", "fsync a (operation 4)"),
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("zero", "zero"),
        ("stale", "stale, from free space"),
        ("other", "of unknown origin"),
        ("error:5", "not readable (errno 5)"),
        ("write:0", "those of append a 10"),
        ("write:1", "those of write a 0 5"),
        ("write:1+4096", "those of write a 0 5, 4096 bytes behind their place"),
        ("write:0-512", "those of append a 10, 512 bytes before their place"),
        ("write:7", "those of a write (tag 7) that is not in the workload"),
    ],
)
def test_a_source_is_told_by_the_operation_that_wrote_it(source: str, expected: str) -> None:
    assert shown_source(WORKLOAD, source) == expected


def file(*runs: str) -> Entry:
    """A file with ten bytes of each source."""
    segments = tuple(Segment(10 * place, 10 * place + 10, source) for place, source in enumerate(runs))
    return Entry("a", "file", size=10 * len(runs), segments=segments)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (None, "a is missing"),
        (Entry("a", "file", size=10, error=5), "a cannot be read (errno 5)"),
        (Entry("a", "dir"), "a is a dir"),
        (file(), "a is 0 bytes long"),
        (file("zero"), "a is 10 bytes long; of its bytes, 5 to 10 are zero"),
        (
            file("zero", "zero", "stale"),
            "a is 30 bytes long; of its bytes, 5 to 20 are zero, 20 to 25 are stale, from free space",
        ),
    ],
)
def test_what_is_found_between_two_bytes(entry: Entry | None, expected: str) -> None:
    assert shown_bytes(WORKLOAD, "a", entry, 5, 25) == expected


def test_of_many_runs_the_first_four_are_shown_and_the_others_counted() -> None:
    four = "0 to 10 are zero, 10 to 20 are of unknown origin, 20 to 30 are zero, 30 to 40 are of unknown origin"
    assert shown_bytes(WORKLOAD, "a", file(*["zero", "other"] * 2), 0, 40).endswith(f"of its bytes, {four}")
    assert shown_bytes(WORKLOAD, "a", file(*["zero", "other"] * 3), 0, 60).endswith(f"{four}, 2 more runs")
