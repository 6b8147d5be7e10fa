"""The agent does what the language says: if nothing is lost, the tree is the simulated one."""

from dataclasses import replace

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.guests.events import IntervalReport
from postcrash.harness.guests.machine import Machine
from postcrash.model import Entry, Observation, Operation, Tree, Workload, WorkloadBuilder, simulate

from .conftest import Record, intervals_of

BUDGET = Budget(recoveries=1, seconds=60)

EVERYTHING = (
    WorkloadBuilder()
    .mkdir("D").creat("D/old").write("D/old", 0, 10_000).creat("X").append("X", 5000).creat("victim").mkdir("gone")
    .begin()
    .mkdir("E").rmdir("gone").creat("D/new").write("D/new", 100, 9000).append("D/new", 4096).dwrite("X", 4096, 4096)
    .mmapwrite("D/old", 4096, 8192).truncate("X", 7000).creat("F").fallocate("F", "none", 0, 20_000)
    .write("F", 4096, 4096).fallocate("F", "punch-hole", 4096, 2048).fallocate("F", "zero-range", 6144, 1024)
    .fallocate("F", "keep-size", 20_000, 8192).fallocate("F", "zero-range-keep-size", 18_000, 8192)
    .link("X", "E/hard").symlink("../X", "E/soft").unlink("victim").rename("D/old", "E/moved").creat("P")
    .write_osync("P", 0, 100).dwrite_osync("P", 512, 512).creat("Q").append("Q", 200).exchange("P", "Q")
    .setxattr("Q", "user.colour", "blue")
    .setxattr("D", "user.a", "1").setxattr("D", "user.b", "2").removexattr("D", "user.a").fsync("D").fdatasync("X")
    .msync("E/moved").mmapwrite("E/moved", 0, 100).msync("E/moved", 10, 50).writeback("D/new")
    .writeback("D/new", 0, 4096).commit().checkpoint().fsync(".").syncfs().sync().checkpoint()
    .build("everything")
)  # fmt: skip


SHARED = (
    WorkloadBuilder()
    .creat("A").write("A", 0, 20_000).creat("B").write("B", 0, 12_288)
    .begin()
    .reflink("A", 4096, "B", 8192, 8192).creat("C").reflink("A", 0, "C", 0, 20_000).dedupe("A", 0, "C", 0, 20_000)
    .reflink("C", 16_384, "C", 24_576, 3616).write("C", 100, 5000).write("A", 8000, 100).fsync("B")
    .open("B").reflink("@B", 8192, "A", 20_480, 4096).truncate("@B", 9000)
    .build("shared")
)  # fmt: skip
MOVED = (
    WorkloadBuilder()
    .creat("A").write("A", 0, 20_000).creat("B").write("B", 100, 9000)
    .begin()
    .fallocate("A", "collapse-range", 4096, 8192).fallocate("B", "insert-range", 4096, 4096).write("A", 6000, 3000)
    .fallocate("A", "insert-range", 0, 12_288).fsync("A").fallocate("B", "collapse-range", 0, 4096)
    .truncate("A", 19_000)
    .build("moved")
)  # fmt: skip
UNNAMED = (
    WorkloadBuilder()
    .mkdir("D").mknod("old", "block")
    .begin()
    .tmpfile("D/t").append("@D/t", 5000).link("@D/t", "D/named").append("@D/t", 3000).drop_caches().fsync("D/named")
    .tmpfile("lost").append("@lost", 100)
    .mknod("D/fifo", "fifo").mknod("D/socket", "socket").mknod("D/char", "char").rename("old", "D/block")
    .link("D/fifo", "fifo2").drop_caches()
    .build("unnamed")
)  # fmt: skip


def shape(entry: Entry, target: str) -> tuple[object, ...]:
    """The parts of an entry on which file systems agree. vfat has no permissions."""
    links = entry.nlink if entry.type == "file" else None
    mode = entry.mode if entry.type == "file" and target != "vfat" else None
    return (entry.type, mode, links, entry.size, entry.segments, entry.xattrs,
            entry.target)  # fmt: skip


def hard_links(tree: Tree) -> set[frozenset[str]]:
    inodes: dict[int, set[str]] = {}
    for path, entry in tree.items():
        inodes.setdefault(entry.inode, set()).add(path)
    return {frozenset(paths) for paths in inodes.values()}


XATTRS = ("setxattr", "removexattr")
LACKS = {
    **dict.fromkeys(("ext4-original", "ext4-current", "ext4-journal", "btrfs", "xfs", "f2fs"), ()),
    **dict.fromkeys(("ext3-ordered", "ext3-writeback"), ("fallocate",)),
    "fuse2fs": ("fallocate", "exchange"),
    "jfs": ("fallocate", "exchange"),
    "minix": ("fallocate", "exchange", "dwrite", "dwrite-osync", *XATTRS),
    "nilfs2": ("fallocate", "exchange", *XATTRS),
    "reiserfs": ("fallocate", "exchange", "dwrite-osync", *XATTRS),
    "vfat": ("fallocate", "link", "symlink", *XATTRS),
}
"""The operations that each target lacks."""


@pytest.mark.parametrize("target", LACKS)
def test_every_operation_leaves_the_simulated_tree(machine: Machine, record: Record, target: str) -> None:
    kept = tuple(op for op in EVERYTHING.ops if op.word not in LACKS[target])
    check(machine, record, target, replace(EVERYTHING, ops=kept))


@pytest.mark.parametrize(
    ("workload", "target"),
    [
        *((SHARED, target) for target in ("btrfs", "xfs")),
        *((MOVED, target) for target in ("ext4-current", "xfs", "f2fs")),
        *((UNNAMED, target) for target in ("ext4-current", "btrfs", "xfs", "f2fs", "minix")),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_what_few_file_systems_have_leaves_the_simulated_tree(
    machine: Machine, record: Record, workload: Workload, target: str
) -> None:
    check(machine, record, target, replace(workload, ops=(*workload.ops, Operation("sync"))))


MARK, MARKED = 1036, 1035  # fcntl's F_SET_RW_HINT and F_GET_RW_HINT: a number that an inode has in memory only
ASKS = 'python3 -c \'import fcntl; print(fcntl.fcntl(open("D/a"), {}, (2).to_bytes(8, "little"))[0])\' | grep -q {}'


@pytest.mark.parametrize("target", ["ext4-current", "btrfs", "xfs", "f2fs"])
@pytest.mark.parametrize("is_dropped", [True, False])
def test_what_was_dropped_is_not_in_memory(record: Record, target: str, is_dropped: bool) -> None:
    mark, look = (
        Operation("run", value=ASKS.format(*asked)) for asked in ((MARK, 2), (MARKED, 0 if is_dropped else 2))
    )
    made = WorkloadBuilder().begin().mkdir("D").creat("D/a").fsync("D/a").sync().build("dropped")
    drop = (Operation("drop-caches"),) if is_dropped else ()
    record(target, replace(made, ops=(*made.ops, mark, *drop, look)))


def check(machine: Machine, record: Record, target: str, workload: Workload) -> None:
    """The state that lost nothing is the simulated one."""
    recorded = record(target, workload)
    last = intervals_of(list(machine.explore(recorded.source, recorded.recover(), BUDGET)))[-1]
    assert (last.instants[-1].started, last.instants[-1].returned) == (len(workload.operations),) * 2
    executed = machine.execute(recorded.source, last.index, [], recorded.recover())
    observation = Observation.from_wire(executed.observation)
    expected = simulate(workload)[-1]
    assert observation.mount_errno == 0
    found, simulated = ({p: shape(e, target) for p, e in tree.items()} for tree in (observation.tree, expected))
    assert found == simulated
    assert hard_links(observation.tree) == hard_links(expected)


def test_attributes_that_do_not_fit_into_a_page_are_read(machine: Machine, record: Record) -> None:
    builder = WorkloadBuilder().begin().creat("a")
    for number in range(300):
        builder.setxattr("a", f"user.attribute{number:04}", "v")
    recorded = record("btrfs", builder.sync().build("attributes"))
    events = machine.explore(recorded.source, recorded.recover(), Budget(1000, 60))
    reports = [event for event in events if isinstance(event, IntervalReport)]
    last = Observation.from_wire(reports[-1].outcomes[0].observation)
    assert len(last.tree["a"].xattrs) == 300
