"""All checkers: none objects if there was no crash, and each objects to something."""

import errno
from dataclasses import replace
from typing import Any

import pytest

from postcrash.checkers import CHECKERS, PRACTICE, Checker
from postcrash.harness.examination.judges import judges_named
from postcrash.model import Entry, FsckResult, History, Observation, Segment, Tree, Usage, Verdict
from postcrash.properties import HOTDEP13
from postcrash.properties.family import family

from ..properties.conformance import crash_free

EVERY = (*CHECKERS, *PRACTICE)
ALL = pytest.mark.parametrize("checker", EVERY, ids=lambda checker: checker.name)

(WORKLOAD,) = family(("canary", "", "creat a; sync; creat b; awrite a 0 512"))
ROOT, A = Entry(".", "dir", nlink=2, inode=1), Entry("a", "file", nlink=1, inode=2)
FINE: dict[str, Any] = {
    "fsck": FsckResult(0, ""),
    "repair": FsckResult(1, "fixed"),
    "used": Usage("", 0),
    "klog_whole": True,
}
"""Parts of an observation other than the tree, all in order."""
CANARIES = {
    "mounts": Observation(5, Tree(), **FINE),
    "kernel-log": Observation(0, Tree([ROOT, A]), ("<2>EXT4-fs error",), **FINE),
    "fsck": Observation(0, Tree([ROOT, A]), **FINE | {"fsck": FsckResult(4, "bad")}),
    "boots": Observation(0, Tree([ROOT, A]), **FINE | {"repair": FsckResult(4, "run fsck by hand")}),
    "durability": Observation(0, Tree([ROOT]), **FINE),
    "never-written": Observation(0, Tree([ROOT, A, Entry("c", "file", nlink=1, inode=3)]), **FINE),
    "foreign-bytes": Observation(0, Tree([ROOT, replace(A, size=1, segments=(Segment(0, 1, "stale"),))]), **FINE),
    "untorn": Observation(0, Tree([ROOT, replace(A, size=256, segments=(Segment(0, 256, "write:0"),))]), **FINE),
    "link-counts": Observation(0, Tree([ROOT, replace(A, nlink=2)]), **FINE),
    "usable": Observation(0, Tree([ROOT, A]), **FINE | {"used": Usage("rmdir D", errno.ENOTEMPTY)}),
}


@ALL
def test_each_checker_finds_its_canary_and_no_other(checker: Checker) -> None:
    assert checker.statement
    for name, observation in CANARIES.items():
        opinion = checker.check(History(WORKLOAD, 4, 3), observation)
        assert (opinion.verdict is Verdict.VIOLATED) == (name == checker.name), opinion
        assert opinion.message or opinion.verdict is Verdict.HOLDS


@ALL
def test_without_a_crash_nothing_is_found(checker: Checker) -> None:
    for checked in HOTDEP13:
        for workload in checked.workloads():
            for history, tree in crash_free(workload.with_tail()):
                assert checker.examine(history, Observation(0, tree, **FINE)).verdict is Verdict.HOLDS


def test_checkers_are_found_by_name() -> None:
    assert judges_named(checker.name.upper() for checker in EVERY) == tuple(EVERY)
    with pytest.raises(LookupError, match=r"unknown property or checker 'none'.* \(known: mounts, kernel-log"):
        judges_named(["none"])
