"""Durable files that were renamed in turn must all be there: one found file is not two of them."""

from itertools import product

import pytest

from postcrash.checkers.durability import Durability
from postcrash.checkers.matching import unmatched
from postcrash.model import Entry, Tree

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


def tree(identities: dict[str, int]) -> Tree:
    return Tree(Entry(path, "file", inode=inode) for path, inode in identities.items())


def test_those_that_were_placed_first_make_room() -> None:
    places = {1: ["a", "b"], 2: ["a", "c"], 3: ["a"]}
    assert unmatched(tree({"a": 7, "b": 8, "c": 9}), places, lambda inode, path: True) is None
    assert unmatched(tree({"a": 7, "b": 8, "c": 8}), places, lambda inode, path: True) == 3
    assert unmatched(tree({"a": 7, "b": 8, "c": 9}), places, lambda inode, path: (inode, path) != (2, "c")) == 3


def test_things_without_a_number_are_told_apart_by_their_paths() -> None:
    assert unmatched(tree({"a": 0, "b": 0}), {1: ["a"], 2: ["b"]}, lambda inode, path: True) is None


def test_a_long_chain_makes_room() -> None:
    """Each log of a rotation can be under two names. The last one needs all others to move."""
    count = 3000
    found = tree({f"{number}": number + 1 for number in range(count + 1)})
    places = {number: [f"{number}", f"{number + 1}"] for number in range(count)}
    assert unmatched(found, {**places, count: ["0"]}, lambda inode, path: True) is None
    assert unmatched(found, {**places, count: ["0"], count + 1: ["0"]}, lambda inode, path: True) == count + 1


@pytest.mark.parametrize("allowed", [*product([(), (0,), (1,), (0, 1), (1, 2), (0, 1, 2)], repeat=3)])
def test_agrees_with_trying_every_way(allowed: tuple[tuple[int, ...], ...]) -> None:
    places = {number: [f"{each}" for each in some] for number, some in enumerate(allowed)}
    is_possible = any(len(set(way)) == len(way) for way in product(*allowed))
    found = unmatched(tree({"0": 1, "1": 2, "2": 3}), places, lambda inode, path: True)
    assert (found is None) == is_possible
