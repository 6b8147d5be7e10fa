"""What one side has shown, and which part of an outcome it has not shown: every part of a tree counts."""

from dataclasses import replace

import pytest

from postcrash.harness.expectations.difference import ReferenceOutcomes
from postcrash.model import Entry, History, Observation, Tree, parse_workload
from postcrash.model.observation import FsckResult
from postcrash.model.segments import Segment

WORKLOAD = parse_workload("creat a\nsync", "w")
NOW, LATER = History(WORKLOAD, 1, 0), History(WORKLOAD, 1, 1)
ROOT = Entry(".", "dir", mode=0o755, nlink=2, inode=1)
FILE = Entry("a", "file", mode=0o644, nlink=1, inode=2, size=4, segments=(Segment(0, 4, "write:0"),))
KNOWN = (ROOT, FILE)


def outcome(*entries: Entry, errno: int = 0) -> Observation:
    return Observation(errno, Tree(entries))


def shown(*entries: Entry) -> ReferenceOutcomes:
    known = ReferenceOutcomes()
    known.add(NOW, outcome(*entries))
    return known


def test_what_was_shown_at_an_instant_is_known_there_only() -> None:
    assert shown(*KNOWN).has(NOW, outcome(*KNOWN))
    assert not shown(*KNOWN).has(LATER, outcome(*KNOWN))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (outcome(ROOT), "a is missing, there a file of 4 bytes of mode 644"),
        (outcome(*KNOWN, replace(FILE, path="b", inode=3)), "b is a file of 4 bytes of mode 644, there missing"),
        (
            outcome(ROOT, replace(FILE, size=0, segments=())),
            "a is a file of 0 bytes of mode 644, there a file of 4 bytes of mode 644",
        ),
        (outcome(ROOT, replace(FILE, segments=(Segment(0, 4, "zero"),))), "a file has bytes that it never has there"),
        (
            outcome(ROOT, replace(FILE, nlink=2)),
            "a is a file of 4 bytes with 2 links of mode 644, there a file of 4 bytes of mode 644",
        ),
        (outcome(ROOT, replace(FILE, xattrs=(("user.x", "00"),))), "a is a file of 4 bytes with attributes"),
        (
            outcome(ROOT, replace(FILE, mode=0o600)),
            "a is a file of 4 bytes of mode 600, there a file of 4 bytes of mode 644",
        ),
        (outcome(ROOT, Entry("a", "file", error=5)), "a is a file that cannot be read (errno 5), there a file of 4"),
        (outcome(ROOT, Entry("a", "symlink", mode=0o777, nlink=1, inode=2, target="t")), "a is a symlink to t"),
        (outcome(errno=117), "mounting fails with errno 117"),
    ],
)
def test_whatever_differs_is_a_difference_and_told(found: Observation, told: str) -> None:
    known = shown(*KNOWN)
    assert not known.has(NOW, found)
    assert "; ".join(known.differences(NOW, found)).startswith(told)


def test_two_files_are_not_two_names_of_one() -> None:
    one = replace(FILE, nlink=1)
    two = replace(FILE, path="b", inode=3)
    assert not shown(ROOT, one, two).has(NOW, outcome(ROOT, one, replace(two, inode=2)))
    assert shown(ROOT, one, two).has(NOW, outcome(ROOT, replace(one, inode=8), replace(two, inode=7)))


def test_what_an_fsck_has_left_is_no_outcome_of_mounting_alone() -> None:
    repaired = replace(outcome(*KNOWN), repair=FsckResult(0, ""))
    assert not shown(*KNOWN).has(NOW, repaired)
