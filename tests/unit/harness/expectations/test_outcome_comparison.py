"""In words: the names and the bytes in which an outcome differs from another, and nothing in which it does not."""

from dataclasses import replace
from typing import Any

import pytest

from postcrash.harness.expectations.outcome_comparison import metadata_of, of_bytes, of_names
from postcrash.model import Entry, Observation, Segment, Tree, parse_workload
from postcrash.model.observation import FsckResult

WORKLOAD = parse_workload("creat a\nappend a 4\n", "w")
ROOT = Entry(".", "dir", mode=0o755, nlink=2, inode=1)
FILE = Entry("a", "file", mode=0o644, nlink=1, inode=2, size=4, segments=(Segment(0, 4, "write:0"),))
LINK = Entry("s", "symlink", mode=0o777, nlink=1, inode=3, size=1, target="a")


def seen(*entries: Entry) -> Observation:
    return Observation(0, Tree([ROOT, *entries]))


def told(mine: Observation, theirs: Observation) -> list[str]:
    return of_names(metadata_of(mine), metadata_of(theirs))


def test_numbers_of_inodes_and_bytes_of_files_are_no_nature() -> None:
    other = replace(FILE, inode=9, segments=(Segment(0, 4, "zero"),))
    assert metadata_of(seen(FILE)) == metadata_of(seen(other))
    assert told(seen(FILE), seen(other)) == []


def test_which_names_share_an_inode_is_part_of_their_nature() -> None:
    apart, together = seen(FILE, replace(FILE, path="b", inode=7)), seen(FILE, replace(FILE, path="b"))
    assert told(together, apart) == ["b is the same file as a"]
    assert told(apart, together) == ["b is not the same file as a"]


def test_the_mount_and_a_repair_are_part_of_an_outcome() -> None:
    assert metadata_of(Observation(5, Tree())) != metadata_of(Observation(0, Tree()))
    assert metadata_of(seen(FILE)) != metadata_of(replace(seen(FILE), repair=FsckResult(1, "")))


def test_damage_to_the_files_of_an_aged_image_is_part_of_an_outcome() -> None:
    assert metadata_of(seen(FILE)) != metadata_of(replace(seen(FILE), aged=".aged/1 is missing"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"size": 5}, "has size 4, not 5"),
        ({"mode": 0o600}, "has mode 644, not 600"),
        ({"nlink": 2}, "has link count 1, not 2"),
        ({"xattrs": (("user.a", "61"),)}, "has attributes none, not user.a=61"),
        ({"size": 0, "mode": 0}, "has size 4, not 0 and has mode 644, not 0"),
        ({"error": 5}, "is a file of 4 bytes, not a file that cannot be read (errno 5)"),
        ({"type": "dir"}, "is a file of 4 bytes, not a dir"),
    ],
)
def test_each_difference_of_a_name_is_told(changed: dict[str, Any], words: str) -> None:
    assert told(seen(FILE), seen(replace(FILE, **changed))) == [f"a {words}"]


def test_missing_names_and_symbolic_links() -> None:
    assert told(seen(FILE), seen()) == ["a is there"]
    assert told(seen(), seen(LINK)) == ["s is missing"]
    assert told(seen(LINK), seen(replace(LINK, target="b"))) == ["s points to a, not b"]


@pytest.mark.parametrize(("count", "more"), [(3, []), (4, ["1 more names"]), (9, ["6 more names"])])
def test_of_many_names_the_first_are_told(count: int, more: list[str]) -> None:
    many = [replace(FILE, path=f"{number}", inode=10 + number) for number in reversed(range(count))]
    found = told(seen(*many), seen())
    assert ([each[0] for each in found[:3]], found[3:]) == (["0", "1", "2"], more)


def held(*sources: str, path: str = "a") -> Entry:
    segments = tuple(Segment(number, number + 1, source) for number, source in enumerate(sources))
    return replace(FILE, path=path, inode=ord(path), size=len(sources), segments=segments)


def test_strange_bytes_are_told_against_the_nearest_tree() -> None:
    found = Tree([held("zero", "write:0"), held("zero", path="b")])
    far = Tree([held("stale", "zero"), held("stale", path="b")])
    near = Tree([held("zero", "stale"), held("zero", path="b")])
    words = ["a has bytes from 1 on that are those of append a 4"]
    assert of_bytes(WORKLOAD, found, [far, near]) == of_bytes(WORKLOAD, found, [near, far]) == words


def test_files_that_never_came_together_are_told_as_such() -> None:
    found = Tree([held("zero"), held("zero", path="b")])
    assert of_bytes(WORKLOAD, found, [found]) == ["files have contents that they never have together"]
