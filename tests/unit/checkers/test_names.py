"""Durable files that were renamed in turn must all be there: one found file is not two of them."""

import pytest

from postcrash.checkers.durability import Durability

from .test_fsync_names import Found, objection

SHIFTED = "creat a; creat b; ---; rename a c; rename b a"
SYNCED = "creat a; creat b; sync; rename a c; rename b a"
SPLIT = "creat a; write a 0 10; creat b; ---; rename a c; rename b a"


@pytest.mark.parametrize(
    ("operations", "found", "expected"),
    [
        (
            SHIFTED,
            {"a": (2, "a")},
            "the set-up was durable, but what was b then is not there as b or a; "
            "if a is it, something else that must be there is missing",
        ),
        (
            SYNCED,
            {"a": (2, "a")},
            "sync (operation 3) had returned, but what was b then is not there as b or a; "
            "if a is it, something else that must be there is missing",
        ),
        (SPLIT, {"a": (3, "a")}, "the set-up was durable, but what was b then is not there as b or a"),
    ],
)
def test_one_found_file_is_not_two_durable_ones(operations: str, found: Found, expected: str) -> None:
    assert objection(Durability(), operations, found) == expected


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (SHIFTED, {"a": (2, "a"), "b": (2, "b")}),
        (SHIFTED, {"c": (2, "a"), "b": (2, "b")}),
        (SHIFTED, {"c": (2, "a"), "a": (2, "b")}),
        (SHIFTED, {"c": (2, "a"), "a": (2, "b"), "b": (2, "b")}),
        (f"{SHIFTED}; unlink a", {"a": (2, "a")}),
        (f"{SHIFTED}; creat d; rename d a", {"a": (2, "a")}),
    ],
    ids=["neither renamed", "one renamed", "both renamed", "half a rename", "one removed", "one replaced"],
)
def test_what_a_crash_may_leave_of_two_renames(operations: str, found: Found) -> None:
    assert objection(Durability(), operations, found) == ""
