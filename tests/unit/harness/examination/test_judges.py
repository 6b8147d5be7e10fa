"""What judges say if they cannot see or have nothing to judge, and which recoveries show what they look at."""

from typing import Any

import pytest

from postcrash.harness.examination.judges import all_judges, is_shown, judges_named, kind_of, recoveries_for
from postcrash.model import Entry, FsckResult, History, Observation, Segment, Tree, Usage, Verdict, parse_workload
from postcrash.model.judge import Judge
from postcrash.targets import target_named

EIO = 5
HISTORY = History(parse_workload("creat a\nfsync a\n", "w"), 2, 2)
NOT_MOUNTED = Observation.from_wire({"mount_errno": EIO, "tree": [], "klog": [], "fsck": None, "used": None})
JUDGES = {judge.name: judge for judge in all_judges()}


@pytest.mark.parametrize(
    "judge", [judge for name, judge in JUDGES.items() if name not in ("mounts", "kernel-log", "boots")]
)
def test_nothing_holds_on_a_state_that_does_not_mount(judge: Judge) -> None:
    opinion = judge.check(HISTORY, NOT_MOUNTED)
    assert (opinion.verdict, opinion.relevant) == (Verdict.UNDECIDED, False)
    assert "does not mount (errno 5)" in opinion.message


def test_that_it_does_not_mount_is_a_violation() -> None:
    assert JUDGES["mounts"].check(HISTORY, NOT_MOUNTED).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("name", "kinds"), [("ext4-current", ["walk", "fsck", "use"]), ("nilfs2", ["walk", "use"])])
def test_what_has_no_fsck_is_not_recovered_for_it(name: str, kinds: list[str]) -> None:
    target = target_named(name)
    assert [kind_of(kind) for kind in recoveries_for(all_judges(), target)] == kinds
    (fsck,) = judges_named(["fsck"])
    assert is_shown(fsck, target) == ("fsck" in kinds)


ROOT = Entry(".", "dir", nlink=3, inode=1)
FILE = Entry("a", "file", nlink=1, inode=2)
BYTES = Entry("a", "file", nlink=1, inode=2, size=1, segments=(Segment(0, 1, "zero"),))
SECTOR = Entry("a", "file", nlink=1, inode=2, size=512, segments=(Segment(0, 512, "write:0"),))
FOLDER = Entry("D", "dir", nlink=2, inode=3)
UNCOUNTED = Entry("D", "dir", nlink=1, inode=3)
LOST_AND_FOUND = Entry("lost+found", "dir", nlink=2, inode=4)
UNREADABLE = Entry("a", "file", nlink=1, inode=2, error=EIO)
UNREADABLE_BYTES = Entry("a", "file", nlink=1, inode=2, size=1, segments=(Segment(0, 1, "error:5"),))


def shown(*entries: Entry, **more: Any) -> Observation:
    return Observation(0, Tree([ROOT, *entries]), **{"klog_whole": True, **more})


PREMISES: list[tuple[str, str, Observation, bool]] = [
    ("mounts", "creat a", shown(), True),
    ("kernel-log", "creat a", shown(), True),
    ("fsck", "creat a", shown(fsck=FsckResult(0, "")), True),
    ("boots", "creat a", shown(repair=FsckResult(1, "")), True),
    ("usable", "creat a", shown(used=Usage("", 0)), True),
    ("durability", "creat a", shown(FILE), False),
    ("durability", "creat a; fsync a", shown(), False),
    ("durability", "creat a; fsync a", shown(FILE), True),
    ("durability", "creat a; fsync .", shown(FILE), True),
    ("durability", "creat a; fsync .; unlink a; fsync .", shown(), True),
    ("never-written", "creat a", shown(LOST_AND_FOUND), False),
    ("never-written", "creat a", shown(FILE), True),
    ("foreign-bytes", "creat a; append a 1", shown(), False),
    ("foreign-bytes", "creat a; append a 1", shown(FILE), False),
    ("foreign-bytes", "creat a; append a 1", shown(BYTES), True),
    ("untorn", "creat a; awrite a 0 512", shown(FILE), False),
    ("untorn", "creat a; awrite a 0 512", shown(SECTOR), True),
    ("link-counts", "creat a", shown(), False),
    ("link-counts", "mkdir D", Observation(0, Tree([Entry(".", "dir", nlink=1, inode=1), UNCOUNTED])), False),
    ("link-counts", "creat a", shown(FILE), True),
    ("P4", "creat a", shown(FILE), False),
    ("P4", "creat a; fsync a", shown(FILE), True),
]


@pytest.mark.parametrize(("name", "operations", "observation", "relevant"), PREMISES)
def test_each_judge_says_whether_its_premise_was_true(
    name: str, operations: str, observation: Observation, relevant: bool
) -> None:
    workload = parse_workload(operations.replace("; ", "\n"), "w")
    count = len(workload.operations)
    opinion = JUDGES[name].check(History(workload, count, count), observation)
    assert (opinion.verdict, opinion.relevant) == (Verdict.HOLDS, relevant), opinion.message


def test_every_checker_has_a_row_where_its_premise_is_true() -> None:
    checkers = {name for name, judge in JUDGES.items() if not name.startswith("P")}
    assert {name for name, _, _, relevant in PREMISES if relevant} >= checkers


@pytest.mark.parametrize("part", [UNREADABLE, UNREADABLE_BYTES])
@pytest.mark.parametrize("name", ["durability", "never-written", "foreign-bytes", "link-counts", "P1", "P3", "P4"])
def test_nothing_holds_where_a_part_could_not_be_read(name: str, part: Entry) -> None:
    workload = parse_workload("creat a\nappend a 1\n", "w")
    opinion = JUDGES[name].check(History(workload, 2, 2), shown(part))
    assert opinion.verdict is Verdict.UNDECIDED
    assert "a cannot be read" in opinion.message


def test_what_is_wrong_is_wrong_though_a_part_could_not_be_read() -> None:
    opinion = JUDGES["never-written"].check(HISTORY, shown(UNREADABLE, Entry("c", "file", nlink=1, inode=5)))
    assert opinion.verdict is Verdict.VIOLATED
    promised = JUDGES["durability"].check(HISTORY, shown(UNREADABLE))
    assert promised.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    "name", ["mounts", "durability", "never-written", "foreign-bytes", "link-counts", "P4", "usable"]
)
def test_nothing_holds_of_what_was_not_looked_at(name: str) -> None:
    opinion = JUDGES[name].check(HISTORY, Observation(0, Tree(), klog_whole=True))
    assert (opinion.verdict, opinion.relevant) == (Verdict.UNDECIDED, False)
