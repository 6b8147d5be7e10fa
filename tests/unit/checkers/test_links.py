"""A directory entry belongs to its directory's inode, and paths are taken apart without the root."""

import pytest

from postcrash.checkers.links import Link, chain, link_of, links, within
from postcrash.model import Entry, Tree, parse_workload, simulate
from postcrash.model.simulate import ROOT_INODE


def after(operations: str) -> Tree:
    return simulate(parse_workload(operations.replace("; ", "\n"), "case"))[-1]


@pytest.mark.parametrize(
    ("path", "expected"), [(".", []), ("a", ["a"]), ("D/a", ["D", "D/a"]), ("D/E/a", ["D", "D/E", "D/E/a"])]
)
def test_a_chain_goes_from_the_outside_in_and_leaves_out_the_root(path: str, expected: list[str]) -> None:
    assert list(chain(path)) == expected


@pytest.mark.parametrize(("folder", "expected"), [(".", "a"), ("D", "D/a"), ("D/E", "D/E/a")])
def test_a_path_within_the_root_does_not_begin_with_it(folder: str, expected: str) -> None:
    assert within(folder, "a") == expected


def test_an_entry_keeps_its_link_when_its_directory_is_renamed() -> None:
    before, moved = after("mkdir D; creat D/a"), after("mkdir D; creat D/a; rename D E")
    assert link_of(before, "D/a") == link_of(moved, "E/a") == Link(before["D"].inode, "a")
    assert link_of(before, "D") == Link(ROOT_INODE, "D")
    assert link_of(moved, "E") == Link(ROOT_INODE, "E")


def test_the_root_is_no_entry_and_two_names_of_a_file_are_two() -> None:
    tree = after("mkdir D; creat D/a; link D/a b; open b")
    folder, file = tree["D"].inode, tree["b"].inode
    assert links(tree) == {Link(ROOT_INODE, "D"): folder, Link(folder, "a"): file, Link(ROOT_INODE, "b"): file}
    assert links(after("sync")) == {}


def test_an_entry_can_be_asked_for_before_it_is_there_but_not_below_what_is_missing() -> None:
    """Only the directory must be in the tree: entries that are missing have a link too."""
    tree = Tree([Entry(".", "dir", inode=ROOT_INODE)])
    assert link_of(tree, "a") == Link(ROOT_INODE, "a")
    with pytest.raises(KeyError):
        link_of(tree, "D/a")
