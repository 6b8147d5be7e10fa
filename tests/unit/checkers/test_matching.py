"""Things that must all be there are given things that were found: each one of its own."""

from itertools import product

import pytest

from postcrash.checkers.matching import identity, mistaken_for_another, unmatched
from postcrash.model import Entry, Tree


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


def test_a_second_name_of_a_thing_is_no_second_thing() -> None:
    """A hard link is under two paths, and can still be one of two inodes only."""
    found, places = tree({"a": 7, "b": 7}), {1: ["a", "b"], 2: ["a", "b"]}
    assert identity(found["a"]) == identity(found["b"])
    assert unmatched(found, places, lambda inode, path: True) == 2
    assert unmatched(found, {1: ["a", "b"]}, lambda inode, path: path == "b") is None


def test_an_inode_that_can_be_nowhere_is_told_and_the_first_of_several_is() -> None:
    found = tree({"a": 7})
    assert unmatched(found, {}, lambda inode, path: True) is None
    assert unmatched(found, {1: ["a"], 2: [], 3: []}, lambda inode, path: True) == 2
    assert unmatched(found, {3: ["a"], 2: ["a"], 1: ["a"]}, lambda inode, path: True) == 2


def test_contents_are_looked_at_only_where_the_answer_matters() -> None:
    """Each look may double the work, so a thing that is free is taken without a look at the others."""
    asked: list[tuple[int, str]] = []

    def could_be(inode: int, path: str) -> bool:
        asked.append((inode, path))
        return True

    assert unmatched(tree({"a": 7, "b": 8, "c": 9}), {1: ["a", "b", "c"], 2: ["c", "b"]}, could_be) is None
    assert asked == [(1, "a"), (2, "c")]


def test_a_message_names_every_path_that_is_taken() -> None:
    assert mistaken_for_another(["a"]) == "; if a is it, something else that must be there is missing"
    assert mistaken_for_another(["a", "D/b"]) == "; if a or D/b is it, something else that must be there is missing"
