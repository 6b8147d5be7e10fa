"""Workloads with known answers on Linux 6.1: Ferrite's litmus tests, files held open, old bugs, what hunts found.

The answers are exact: every tree that a crash leaves, and no other. A file is written as its runs:
`0+4096` are 4096 bytes of the first write (set-up included), `zero+10` are ten zeros.
"""

from itertools import product

import pytest

from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.result import instants_of
from postcrash.harness.guests.events import IntervalReport
from postcrash.harness.guests.machine import Machine
from postcrash.model import Entry, History, Observation, Tree, Verdict, every_answer, parse_workload, runs
from postcrash.model.segments import merged

from .conftest import Record, explored, intervals_of, trees_of

FERRITE = {
    "append-chrome": "creat f; append f 2509; fsync f; ---; append f 13; append f 2500",
    "two-appends": "creat f; ---; append f 4096; append f 4096",
    "prefix-append": "creat f; append f 2000; ---; append f 9000",
    "create-rename": "creat t; append t 5000; fsync t; rename t f",
    "replace": "creat f; append f 5000; ---; creat t; append t 6000; rename t f",
    "ordered-overwrites": "creat f; append f 8192; ---; write f 0 4096; write f 4096 4096",
    "overwrites-in-two-files": "creat f; append f 4096; creat g; append g 4096; ---; write f 0 4096; write g 0 4096",
}

IN_ANY_ORDER = {"f=0+8192", "f=1+4096,0+4096", "f=0+4096,2+4096", "f=1+4096,2+4096"}
IN_ANY_ORDER_IN_TWO = {
    "f=0+4096 g=1+4096",
    "f=2+4096 g=1+4096",
    "f=0+4096 g=3+4096",
    "f=2+4096 g=3+4096",
}
WHOLE = {
    "append-chrome": {"f=0+2509", "f=0+2509,1+13,2+2500"},
    "two-appends": {"f=", "f=0+4096,1+4096"},
    "prefix-append": {"f=0+2000", "f=0+2000,1+9000"},
    "create-rename": {"", "t=0+5000", "f=0+5000"},
    "replace": {"f=0+5000", "f=1+6000"},
    "ordered-overwrites": {"f=0+8192", "f=1+4096,2+4096"},
    "overwrites-in-two-files": {"f=0+4096 g=1+4096", "f=2+4096 g=3+4096"},
}
"""Workloads that change files, each file as a whole."""

ANSWERS = {
    "btrfs": WHOLE,
    "xfs": {
        **WHOLE,
        # The rename is there before the data: allocation is delayed, and nothing waits for it
        "replace": {"f=", "f=0+5000", "f=1+6000"},
        "ordered-overwrites": IN_ANY_ORDER,
        "overwrites-in-two-files": IN_ANY_ORDER_IN_TWO,
    },
    "ext4-current": {
        **WHOLE,
        # The size grows with the block that is written back, before the bytes in the block are overwritten
        "append-chrome": {"f=0+2509", "f=0+2509,zero+1587", "f=0+2509,1+13,2+1574", "f=0+2509,1+13,2+2500"},
        "prefix-append": {"f=0+2000", "f=0+2000,zero+2096", "f=0+2000,1+2096", "f=0+2000,1+9000"},
        "ordered-overwrites": IN_ANY_ORDER,
        "overwrites-in-two-files": IN_ANY_ORDER_IN_TWO,
    },
}

HELD = {
    "orphan": "creat f; append f 4096; ---; open f; unlink f; write @f 0 4096; fsync @f",
    "moved": "creat f; append f 4096; ---; open f; rename f g; write @f 0 4096; fsync @f",
    "again": "creat f; append f 4096; ---; open f; unlink f; creat f; append @f 4096; fsync @f; append f 9; fsync f",
}
"""Files that are held open while their names change."""

IN_PLACE = {
    # The bytes may be there before the change of the name, because blocks are overwritten in place
    "orphan": {"f=0+4096", "f=1+4096", ""},
    "moved": {"f=0+4096", "f=1+4096", "g=1+4096"},
    "again": {"f=0+4096", "f=", "f=2+9"},
}
HELD_ANSWERS = {
    "ext4-current": IN_PLACE,
    "xfs": IN_PLACE,
    # Neither the bytes nor the empty file: what an fsync logs is there as a whole
    "btrfs": {"orphan": {"f=0+4096", ""}, "moved": {"f=0+4096", "g=1+4096"}, "again": {"f=0+4096", "f=2+9"}},
}

FIXED = (
    "mkdir A; creat A/bar; fsync A/bar; mkdir B; creat B/bar; rename B/bar A/bar; creat A/foo; fsync A/foo; fsync A",
    "mkdir A; mkdir A/C; rename A/C B; creat B/bar; fsync B/bar; rename B/bar A/bar; rename A B; fsync B/bar",
    "mkdir A; mkdir B; mkdir A/C; creat B/foo; fsync B/foo; link B/foo A/C/foo; fsync A",
    "mkdir A; sync; rename A B; creat B/foo; fsync B/foo; fsync B",
    "mkdir A; mkdir B; creat A/foo; link A/foo B/foo; fsync A/foo; fsync B/foo",
    "mkdir test; mkdir test/A; creat test/foo; creat test/A/foo; fsync test/A/foo; fsync test",
    "creat foo; mkdir A; link foo A/bar; fsync foo",
    "creat foo; append foo 16384; fsync foo; fallocate foo keep-size 16384 4096; fsync foo",
    "creat foo; append foo 16384; fsync foo; fallocate foo zero-range-keep-size 16384 4096; fsync foo",
)
"""Bugs that bounded-exhaustive testing found on btrfs and f2fs of Linux 4.16 (OSDI'18), and that were fixed since."""

PROMISED: dict[str, tuple[str, str, set[str], set[str]]] = {
    # OSDI'18 has a wrong size here, on Linux 4.16. f2fs has fixed this since: the size stays 16 KiB
    "f2fs-zero-range": (
        "f2fs",
        "creat a; append a 16384; fsync a; fallocate a zero-range-keep-size 16384 4096; fsync a",
        {"a=0+16384"},
        set(),
    ),
    # OSDI'18 has the file in the old directory. Linux 6.1 still does this, because fsync(2) promises no names. The fix
    # is fsync_mode=strict, which f2fs has had since then
    "f2fs-renamed-directory": (
        "f2fs",
        "mkdir A; sync; rename A B; creat B/a; fsync B/a",
        {"A", "A A/a=", "B B/a="},
        set(),
    ),
    "f2fs-strict-renamed-directory": (
        "f2fs-strict",
        "mkdir A; sync; rename A B; creat B/a; fsync B/a",
        {"B B/a="},
        set(),
    ),
    # sync(2) without a flush: the transaction was committed before the data was written (docs/hunting.md)
    "xfs-sync": (
        "xfs",
        "creat a; append a 8192; ---; write a 0 4096; commit; sync",
        {"a=0+8192", "a=1+4096,0+4096"},
        {"durability"},
    ),
    # fsync of the new directory logs the new name, and does not remove the old one
    "btrfs-renamed-file": (
        "btrfs",
        "mkdir D; creat D/a; mkdir E; ---; rename D/a E/b; fsync E",
        {"D D/a= E E/b=", "D E E/b="},
        set(),
    ),
    # fsync writes the inode, which says where the attributes' block is, but does not write this block
    "ext2-attributes": ("ext2", "creat a; ---; setxattr a user.x v; fsync a", {"a="}, {"durability", "mounts"}),
}
"""By target: what may be there once the last operation has returned, and which judges object to some of it.

These are cases that bounded-exhaustive testing found on f2fs (OSDI'18), and cases that our hunts found.
"""

JUDGES = ("mounts", "durability", "never-written", "foreign-bytes", "link-counts")


def shown(entry: Entry) -> str:
    if entry.type == "file":
        parts = (
            f"{run.source.removeprefix('write:')}+{run.end - run.start}" for run in merged(runs(entry, 0, entry.size))
        )
        return f"{entry.path}={','.join(parts)}"
    return entry.path


def trees_after(tree: Tree) -> set[str]:
    """The forms of a tree, one for each way to settle its choices."""

    def question() -> str:
        return " ".join(shown(entry) for entry in tree.values() if entry.path != ".")

    return {answer for answer, _ in every_answer(question)}


@pytest.mark.parametrize("name", FERRITE)
@pytest.mark.parametrize("target", ANSWERS)
def test_ferrite(machine: Machine, record: Record, target: str, name: str) -> None:
    assert everything_left(machine, record, target, FERRITE[name]) == ANSWERS[target][name]


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("target", HELD_ANSWERS)
def test_files_held_open(machine: Machine, record: Record, target: str, name: str) -> None:
    assert everything_left(machine, record, target, HELD[name]) == HELD_ANSWERS[target][name]


def everything_left(machine: Machine, record: Record, target: str, operations: str) -> set[str]:
    """Every tree that a crash leaves."""
    recorded = record(target, parse_workload(operations.replace("; ", "\n"), "litmus").with_tail())
    events = explored(machine, recorded, recover=recorded.target.recovery(walk=True, fsck=False))
    return {text for interval in intervals_of(events) for tree in trees_of(interval) for text in trees_after(tree)}


def objections(histories: list[History], shown: IntervalReport) -> set[str]:
    """The judges that object to what a crash interval shows, given what had been promised at any of these instants."""
    observations = [Observation.from_wire(outcome.observation) for outcome in shown.outcomes]
    cases = product(judges_named(JUDGES), histories, observations)
    return {judge.name for judge, history, seen in cases if judge.check(history, seen).verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("name", PROMISED)
def test_what_is_left_of_a_promise(machine: Machine, record: Record, name: str) -> None:
    target, operations, left, judges = PROMISED[name]
    workload = parse_workload(operations.replace("; ", "\n"), name)
    intervals, count = intervals_of(explored(machine, record(target, workload.with_tail()))), len(workload.operations)
    done = [
        (interval, [at for at in instants_of(interval, workload.with_tail()) if at.returned >= count])
        for interval in intervals
    ]
    after = [(interval, histories) for interval, histories in done if histories]
    assert {text for interval, _ in after for tree in trees_of(interval) for text in trees_after(tree)} == left
    assert set().union(*(objections(histories, interval) for interval, histories in after)) == judges


@pytest.mark.parametrize("operations", FIXED)
def test_bugs_that_were_fixed(machine: Machine, record: Record, operations: str) -> None:
    workload = parse_workload(operations.replace("; ", "\n"), "fixed").with_tail()
    intervals = intervals_of(explored(machine, record("btrfs", workload)))
    at = [instants_of(interval, workload) for interval in intervals]
    assert not [found for each in zip(at, intervals, strict=True) if (found := objections(*each))]
    # The promises are put to the test: a drive that still shows its content from the start would be found
    assert "durability" in objections(at[-1], intervals[0])
