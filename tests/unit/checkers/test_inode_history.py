"""What entries and inodes were at each time, also where a name comes back and where a directory moves."""

from collections import defaultdict

import pytest

from postcrash.checkers.inode_history import InodeHistory, inode_history
from postcrash.checkers.links import Link, links
from postcrash.model import Workload, parse_workload
from postcrash.model.simulate import ROOT_INODE


def workload_of(operations: str) -> Workload:
    return parse_workload(operations.replace("; ", "\n"), "case")


def known(operations: str) -> InodeHistory:
    return InodeHistory(workload_of(operations))


def at(name: str, directory: int = ROOT_INODE) -> Link:
    return Link(directory, name)


BACK = "creat a; unlink a; creat a; creat b; rename b a"
"""The name is, from no operation on: missing, 2, missing, 4, 4, 5."""
FIRST, SECOND, THIRD = 2, 4, 5


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 0, {None}),
        (1, 1, {FIRST}),
        (0, 1, {None, FIRST}),
        (1, 2, {FIRST, None}),
        (2, 4, {None, SECOND}),
        (3, 4, {SECOND}),
        (3, 5, {SECOND, THIRD}),
        (5, 5, {THIRD}),
        (0, 5, {None, FIRST, SECOND, THIRD}),
    ],
)
def test_an_entry_stands_for_what_it_is_in_any_tree_from_the_first_to_the_last(
    first: int, last: int, expected: set[int | None]
) -> None:
    assert known(BACK).bound(at("a"), first, last) == expected


def test_an_entry_that_never_was_is_missing_at_all_times() -> None:
    never = known(BACK)
    assert never.bound(at("c"), 0, 5) == {None}
    assert never.first_other(at("c"), 0) is None
    assert never.taken_away(at("c"), 5) is None


def test_a_look_up_adds_nothing() -> None:
    """Threads go through these while others look something up."""
    asked = known(BACK)
    before = dict(asked.links), dict(asked.entries)
    asked.bound(at("c"), 0, 5)
    list(asked.paths(THIRD, 5))
    asked.paths_ever(ROOT_INODE, 5)
    asked.has_name(FIRST, 1, 5)
    assert asked.links[ROOT_INODE] == []
    assert before == (dict(asked.links), dict(asked.entries))


@pytest.mark.parametrize(("count", "expected"), [(0, 1), (1, 2), (2, 3), (3, 5), (4, 5), (5, None)])
def test_an_entry_is_something_else_from_the_next_change_on(count: int, expected: int | None) -> None:
    assert known(BACK).first_other(at("a"), count) == expected


def test_an_entry_that_comes_back_as_it_was_is_nothing_else() -> None:
    """What matters is what it stands for first that differs, not how often it changes."""
    there = known("creat a; rename a b; rename b a")
    assert there.first_other(at("a"), 1) == 2
    assert there.first_other(at("a"), 3) is None
    assert there.bound(at("a"), 1, 3) == {2, None}


@pytest.mark.parametrize(
    ("count", "inode", "expected"),
    [
        (1, None, None),
        (2, None, 1),
        (4, None, 1),
        (5, None, 4),
        (5, FIRST, 1),
        (5, SECOND, 4),
        (4, SECOND, None),
        (5, THIRD, None),
    ],
)
def test_the_last_operation_that_took_an_entry_away(count: int, inode: int | None, expected: int | None) -> None:
    """The index of unlink is 1. The rename replaces what it is the entry of, which takes that away too."""
    assert known(BACK).taken_away(at("a"), count, inode) == expected


def test_a_file_has_all_its_paths_and_an_entry_that_moved_has_its_new_one() -> None:
    moved = known("mkdir D; creat D/a; link D/a b; rename D E; unlink b")
    folder, file = 2, 3
    assert list(moved.paths(file, 1)) == []
    assert list(moved.paths(file, 2)) == [(at("a", folder), "D/a")]
    assert sorted(path for _, path in moved.paths(file, 3)) == ["D/a", "b"]
    assert sorted(path for _, path in moved.paths(file, 4)) == ["E/a", "b"]
    assert list(moved.paths(file, 5)) == [(at("a", folder), "E/a")]
    assert list(moved.paths(ROOT_INODE, 5)) == []


def test_a_directory_that_moved_can_be_under_any_mixture_of_its_names() -> None:
    moved = known("mkdir A; mkdir A/B; rename A C; rename C/B C/D")
    inner = 3
    assert moved.paths_ever(ROOT_INODE, 4) == {"."}
    assert moved.paths_ever(inner, 1) == set()
    assert moved.paths_ever(inner, 2) == {"A/B"}
    assert moved.paths_ever(inner, 3) == {"A/B", "C/B"}
    assert moved.paths_ever(inner, 4) == {"A/B", "C/B", "A/D", "C/D"}


def test_directories_that_change_places_are_never_found_in_each_other_in_a_circle() -> None:
    turned = known("mkdir D; mkdir D/E; rename D/E E; rename D E/D")
    outer, inner = 2, 3
    assert turned.paths_ever(inner, 4) == {"D/E", "E"}
    assert turned.paths_ever(outer, 4) == {"D", "E/D"}


def test_an_inode_has_a_name_from_when_it_is_there_until_its_last_name_goes() -> None:
    held = known("creat a; open a; unlink a; write @a 0 10; creat b")
    assert held.has_name(2, 1, 1)
    assert held.has_name(2, 2, 5)
    assert not held.has_name(2, 3, 5)
    assert not held.has_name(2, 0, 5)
    assert held.has_name(ROOT_INODE, 0, 5)
    given = known("tmpfile t; append @t 10; link @t a")
    assert not given.has_name(2, 1, 2)
    assert given.has_name(2, 1, 3)


def test_states_come_once_and_in_order_and_a_name_is_none_of_them() -> None:
    changed = known("creat a; append a 10; rename a b; link b c; setxattr b user.x y; truncate c 3")
    assert [entry.size for entry in changed.states(2, 0, 6)] == [0, 10, 10, 3]
    assert [entry.size for entry in changed.states(2, 2, 4)] == [10]
    assert [entry.xattrs for entry in changed.states(2, 4, 5)] == [(), (("user.x", "79"),)]
    assert changed.type(2) == "file"
    assert changed.type(ROOT_INODE) == "dir"


def test_an_inode_that_nothing_names_stays_as_it_was() -> None:
    gone = known("creat a; append a 10; unlink a; creat b")
    assert [entry.size for entry in gone.states(2, 4, 4)] == [10]
    held = known("creat a; open a; unlink a; write @a 0 30")
    assert [entry.size for entry in held.states(2, 3, 4)] == [0, 30]


def test_what_is_asked_before_it_is_there_begins_with_what_it_is_later() -> None:
    assert [entry.size for entry in known("sync; creat a; append a 10").states(3, 0, 3)] == [0, 10]
    assert [entry.size for entry in known("sync; creat a; append a 10").states(3, 0, 1)] == []


def test_an_operation_moves_an_entry_in_the_direction_that_it_says() -> None:
    moving = known("creat a; creat b; rename a c; exchange b c; mkdir D; rename c D/c; link b a; unlink b")
    assert moving.moved_to(at("a"), 3) == at("c")
    assert moving.moved_to(at("c"), 3) is None
    assert moving.moved_to(at("b"), 4) == at("c")
    assert moving.moved_to(at("c"), 4) == at("b")
    assert moving.moved_to(at("a"), 4) is None
    assert moving.moved_to(at("c"), 6) == at("c", 6)
    assert moving.moved_to(at("b"), 7) is None
    assert moving.moved_to(at("b"), 8) is None


LONG = (
    "mkdir D; creat a; link a D/a; rename D E; exchange a E/a; creat D; unlink a; rename E/a a; rmdir E; mkdir E; "
    "rename D E/D; exchange a E"
)


def test_entries_are_what_every_tree_says() -> None:
    asked = known(LONG)
    entries = [links(tree) for tree in asked.trees]
    every = sorted({link for each in entries for link in each})
    for first in range(len(entries)):
        for last in range(first, len(entries)):
            for link in every:
                assert asked.bound(link, first, last) == {each.get(link) for each in entries[first : last + 1]}
    made = defaultdict(set)
    for each in entries:
        for link, inode in each.items():
            made[inode].add(link)
    assert {inode: set(found) for inode, found in asked.links.items() if found} == made
    assert sorted(link for found in asked.entries.values() for link in found) == every


def test_the_lives_of_a_workload_are_computed_once() -> None:
    assert inode_history(workload_of(BACK)) is inode_history(workload_of(BACK))
    assert inode_history(workload_of(BACK)) is not inode_history(workload_of(LONG))
