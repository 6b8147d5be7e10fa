"""Litmus table of the durability checker: what must be found, and what must not."""

import pytest

from postcrash.checkers.durability import Durability
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict
from postcrash.model.judge import violated
from postcrash.properties import property_named
from postcrash.properties.family import family

FOUR_K = "creat a; append a 4096"
LONG = "creat a; append a 8192"


def entry_of(word: str) -> Entry:
    """`a`, `D/`, `l->target`, `a=w0:10+zero:5`, `a=w0>4096:10` moved, each with attributes as in `@user.x:61`."""
    word, *attributes = word.split("@")
    xattrs = tuple((name, value) for name, _, value in (text.partition(":") for text in attributes))
    path, _, content = word.partition("=")
    if path.endswith("/"):
        return Entry(path[:-1], "dir", xattrs=xattrs)
    if "->" in path:
        path, _, target = path.partition("->")
        return Entry(path, "symlink", target=target)
    segments: list[Segment] = []
    for run in filter(None, content.split("+")):
        source, _, length = run.partition(":")
        start = segments[-1].end if segments else 0
        name = f"write:{source[1:]}".replace(">-", "-").replace(">", "+") if source[0] == "w" else source
        segments.append(Segment(start, start + int(length), name))
    size = segments[-1].end if segments else 0
    return Entry(path, "file", nlink=1, size=size, segments=tuple(segments), xattrs=xattrs)


def check(setup: str, operations: str, tree: str, started: int | None = None, returned: int | None = None) -> str:
    """What is found, "" if nothing. `started` and `returned` do not count the set-up; by default all had returned."""
    (workload,) = family(("litmus", setup, operations))
    count = len(workload.operations)
    first = len(workload.setup)
    history = History(
        workload, count if started is None else first + started, count if returned is None else first + returned
    )
    observed = Tree([Entry(".", "dir"), *map(entry_of, tree.split())])
    finding = Durability().examine(history, Observation(0, observed))
    assert finding.verdict is Verdict.HOLDS or finding.path
    return finding.message


# set-up, operations (all returned), tree after the crash
FINE = [
    # Without a persistence operation nothing is promised.
    ("", "creat a; append a 10", ""),
    ("", "creat a; append a 10; writeback a; commit; checkpoint", ""),
    ("", "creat a; append a 10", "a=stale:10"),
    # fsync of a file promises its contents, not its name.
    ("", f"{FOUR_K}; fsync a", ""),
    ("", f"{FOUR_K}; fsync a", "a=w0:4096"),
    # The directory's fsync promises names, not contents.
    ("", f"{FOUR_K}; fsync .", "a"),
    ("", f"{FOUR_K}; fsync .", "a=stale:4096"),
    ("", "mkdir D; creat D/a; fsync D", ""),
    ("mkdir D", "creat D/a; fsync .", "D/"),
    # Later operations may be there or not.
    ("", f"{FOUR_K}; sync; append a 100; unlink a", "a=w0:4096"),
    ("", f"{FOUR_K}; sync; append a 100; unlink a", ""),
    ("", f"{FOUR_K}; sync; append a 100", "a=w0:4096+w1:50"),
    ("", f"{FOUR_K}; sync; append a 100", "a=w0:4096+stale:50"),
    ("", f"{FOUR_K}; sync; write a 0 4096", "a=w1:4096"),
    ("", f"{FOUR_K}; sync; write a 0 4096", "a=w0:512+w1:3584"),
    ("", f"{FOUR_K}; sync; truncate a 0", "a"),
    ("", f"{FOUR_K}; sync; truncate a 0; append a 4096", "a=w1:4096"),
    ("", f"{FOUR_K}; sync; truncate a 0; append a 4096", "a=zero:4096"),
    ("", f"{FOUR_K}; sync; truncate a 0; append a 4096", "a=stale:4096"),
    ("", f"{FOUR_K}; sync; truncate a 0; append a 4096", "a=w0:100"),
    ("", f"{FOUR_K}; sync; fallocate a punch-hole 0 4096", "a=zero:4096"),
    ("", f"{FOUR_K}; sync; rename a b", "b=w0:4096"),
    # Bytes that are moved, extent by extent, may be at the old place or at the new one, or a hole may be in between.
    (LONG, "fallocate a insert-range 0 4096", "a=w0:4096+zero:4096+w0:4096"),
    (LONG, "fallocate a insert-range 0 4096", "a=zero:4096+w0>4096:8192"),
    (LONG, "fallocate a collapse-range 0 4096", "a=w0-4096:4096+zero:4096"),
    (LONG, "creat b; reflink a 0 b 0 4096", "a=w0:8192 b"),
    # A file without a name may be lost, even if it was flushed.
    ("", "tmpfile t; append @t 100; fsync @t; link @t a", ""),
    ("", "tmpfile t; append @t 100; fsync @t; link @t a", "a=w0:100"),
    ("", "tmpfile t; link @t a; append @t 100; sync; append a 5", "a=w0:100"),
    ("", "sync; creat a; append a 100", "a=w0:5"),
    ("", f"{FOUR_K}; sync; rename a b", "a=w0:4096 b=w0:4096"),
    # A hole that is being filled may show what its blocks held before, in all of the block
    ("", "creat a; truncate a 8192; sync; write a 0 100", "a=stale:4096+zero:4096"),
    # A replaced file: the name is promised, the new contents are not.
    (FOUR_K, "creat b; append b 10; rename b a", "a"),
    (FOUR_K, "creat b; append b 10; rename b a; fsync .", "a"),
    (FOUR_K, "creat b; exchange a b", "a b=w0:4096"),
    # A directory that is moved later takes its names along.
    ("mkdir D; creat D/a", "rename D E", "E/ E/a"),
    ("mkdir D; creat D/a", "rename D E; mkdir D", "D/ E/ E/a"),
    ("mkdir D; creat D/a", "rename D E; mkdir D", "D/ D/a"),
    ("mkdir D; creat D/a", "rename D E; unlink E/a; mkdir D", "D/"),
    ("mkdir D; creat D/a; mkdir E", "rename D/a E/a; rename D F; mkdir D", "D/ E/ E/a"),
    ("mkdir D; creat D/a", "rename D E; creat E/b; fsync E/b", "E/ E/a"),
    ("mkdir D; mkdir E; creat D/a", "rename D/a E/a; fsync D", "D/ E/"),
    # A name that might be another file's
    ("mkdir D; creat D/a", "rename D E; unlink E/a; creat E/a; append E/a 10; fsync E/a", "E/ E/a"),
    ("creat a; append a 10", "unlink a; creat a; append a 20; fsync a", "a=w0:10"),
    ("", "creat a; rename a b; creat a; append a 20; fsync a", "a"),
    # Removed names
    ("creat a", "unlink a; fsync .", ""),
    ("creat a", "unlink a", "a"),
    ("creat o; creat a", "unlink a; fsync o", "a o"),
    ("creat a", "unlink a; sync; creat a", "a"),
    ("mkdir D; creat D/a; mkdir E", "rename D/a E/a; fsync E", "D/ D/a E/ E/a"),
    # fdatasync, msync and O_SYNC promise less.
    ("creat a", "setxattr a user.x y; append a 10; fdatasync a", "a=w0:10"),
    ("creat a; append a 8192", "write a 0 4096; mmapwrite a 4096 4096; msync a", "a=w0:4096+w2:4096"),
    ("creat a", "write a 0 4096; write-osync a 4096 4096", "a=zero:4096+w1:4096"),
    ("creat a", "write-osync a 0 4096; append a 10", "a=w0:4096+stale:10"),
    # Attributes
    ("creat a; setxattr a user.x y", "setxattr a user.x z", "a@user.x:79"),
    ("creat a; setxattr a user.x y", "setxattr a user.x z", "a@user.x:7a@security.selinux:00"),
    ("creat a; setxattr a user.x y", "removexattr a user.x", "a"),
    # Entries that the file system itself makes
    ("creat a", "sync", "a lost+found/"),
]

# set-up, operations (all returned), tree after the crash, message
BROKEN = [
    ("", f"{FOUR_K}; fsync a", "a", "fsync a (operation 3) had returned, but a is 0 bytes long; it promised 4096"),
    (
        "",
        f"{FOUR_K}; fsync a; append a 100",
        "a=w0:5000",
        "fsync a (operation 3) had returned, but a is 5000 bytes long; it promised 4096 to 4196",
    ),
    (
        "",
        f"{FOUR_K}; fdatasync a",
        "a=w0:2048+zero:2048",
        "fdatasync a (operation 3) had returned, but a is 4096 bytes long; of its bytes, 0 to 2048 are those of append "
        "a 4096, 2048 to 4096 are zero; it promised bytes 0 to 4096 that are those of append a 4096",
    ),
    ("", "creat a; fsync .", "", "fsync . (operation 2) had returned, but a is missing"),
    ("", "creat a; fsync .", "a/", "fsync . (operation 2) had returned, but a is a dir; it promised a file"),
    ("", "creat a; sync", "", "sync (operation 2) had returned, but a is missing"),
    ("", "creat a; syncfs", "", "syncfs (operation 2) had returned, but a is missing"),
    ("creat a", "creat b", "", "the set-up was durable, but a is missing"),
    ("mkdir D", "creat D/a; fsync D", "D/", "fsync D (operation 3) had returned, but D/a is missing"),
    (
        "",
        "mkdir D; creat D/a; fsync D; fsync .",
        "D/",
        "fsync . (operation 4) had returned, but D/a is missing",
    ),
    # A directory that is there although nothing promises its own name
    ("", "mkdir D; creat D/a; fsync D", "D/", "fsync D (operation 3) had returned, but D/a is missing"),
    (
        "",
        "creat a; mkdir b; rename a b/a; fsync b; creat c; rename c b/a; creat a; fsync a",
        "a b/",
        "fsync b (operation 4) had returned, but b/a is missing",
    ),
    # Removed names that come back
    (
        "creat a",
        "unlink a; fsync .",
        "a",
        "fsync . (operation 3) had returned after unlink a (operation 2), but a is there",
    ),
    (
        "mkdir D; creat D/a; mkdir E",
        "rename D/a E/a; fsync D",
        "D/ D/a E/",
        "fsync D (operation 5) had returned after rename D/a E/a (operation 4), but D/a is there",
    ),
    # Bytes that no later operation touches must be as they were.
    (
        "",
        f"{FOUR_K}; sync; append a 100",
        "a=stale:4096",
        "sync (operation 3) had returned, but a is 4096 bytes long; of its bytes, 0 to 4096 are stale, from free "
        "space; it promised bytes 0 to 4096 that are those of append a 4096",
    ),
    (
        "",
        "creat a; truncate a 8192; sync; write a 0 100",
        "a=w0:100+zero:3996+stale:4096",
        "sync (operation 3) had returned, but a is 8192 bytes long; of its bytes, 4096 to 8192 are stale, from free "
        "space; it promised bytes 4096 to 8192 that are zero",
    ),
    (
        "",
        f"{FOUR_K}; sync; write a 0 4096",
        "a=zero:4096",
        "sync (operation 3) had returned, but a is 4096 bytes long; of its bytes, 0 to 4096 are zero; "
        "it promised bytes 0 to 4096 that are those of append a 4096 or those of write a 0 4096",
    ),
    (
        LONG,
        "fallocate a collapse-range 0 4096; fsync a",
        "a=w0:8192",
        "fsync a (operation 4) had returned, but a is 8192 bytes long; it promised 4096",
    ),
    (
        LONG,
        "fallocate a insert-range 0 4096; fsync a",
        "a=zero:4096+w0:8192",
        "fsync a (operation 4) had returned, but a is 12288 bytes long; of its bytes, 4096 to 12288 are those of "
        "append a 8192; it promised bytes 4096 to 12288 that are those of append a 8192, 4096 bytes behind their place",
    ),
    (
        "creat a; append a 8192; creat b",
        "reflink a 4096 b 0 4096; fsync b",
        "a=w0:8192 b=zero:4096",
        "fsync b (operation 5) had returned, but b is 4096 bytes long; of its bytes, 0 to 4096 are zero; it promised "
        "bytes 0 to 4096 that are those of append a 8192, 4096 bytes before their place",
    ),
    # Bytes that had been moved when they were made durable, and were overwritten later.
    (
        "creat a; append a 8192; creat b",
        "reflink a 4096 b 0 4096; fsync b; write b 0 4096",
        "a=w0:8192 b=zero:4096",
        "fsync b (operation 5) had returned, but b is 4096 bytes long; of its bytes, 0 to 4096 are zero; it promised "
        "bytes 0 to 4096 that are those of append a 8192, 4096 bytes before their place or those of write b 0 4096",
    ),
    (
        "",
        "tmpfile t; append @t 100; fsync @t; link @t a",
        "a",
        "fsync @t (operation 3) had returned, but a is 0 bytes long; it promised 100",
    ),
    ("", "mknod c char; fsync .", "", "fsync . (operation 2) had returned, but c is missing"),
    # A replaced name must not be missing, and a renamed file has its old name or its new one.
    (
        "",
        f"{FOUR_K}; sync; rename a b",
        "",
        "sync (operation 3) had returned, but what was a then is not there as a or b",
    ),
    (FOUR_K, "creat b; rename b a", "b", "the set-up was durable, but a is missing"),
    # Another name of the flushed file
    (
        "creat a; link a b",
        "append a 10; fsync a",
        "a=w0:10 b",
        "fsync a (operation 4) had returned, but b is 0 bytes long; it promised 10",
    ),
    # Promises of msync and O_SYNC
    (
        "creat a; append a 8192",
        "write a 0 4096; mmapwrite a 4096 4096; msync a",
        "a=w1:4096+w0:4096",
        "msync a (operation 5) had returned, but a is 8192 bytes long; of its bytes, 4096 to 8192 are those of append "
        "a 8192; it promised bytes 4096 to 8192 that are those of mmapwrite a 4096 4096",
    ),
    (
        "creat a",
        "write a 0 4096; write-osync a 4096 4096",
        "a=w0:4096",
        "write-osync a 4096 4096 (operation 3) had returned, but a is 4096 bytes long; it promised at least 8192",
    ),
    (
        "creat a",
        "write a 0 100; write-odsync a 0 4096",
        "a=w0:100",
        "write-odsync a 0 4096 (operation 3) had returned, but a is 100 bytes long; it promised at least 4096",
    ),
    (
        "creat a",
        "write-osync a 0 4096",
        "a=w0:512+zero:3584",
        "write-osync a 0 4096 (operation 2) had returned, but a is 4096 bytes long; of its bytes, 0 to 512 are those "
        "of write-osync a 0 4096, 512 to 4096 are zero; it promised bytes 0 to 4096 that are those of write-osync a 0 "
        "4096",
    ),
    # Attributes and targets
    (
        "creat a",
        "setxattr a user.x y; fsync a",
        "a",
        "fsync a (operation 3) had returned, but attribute user.x of a is missing; it promised b'y'",
    ),
    (
        "creat a; setxattr a user.x y",
        "removexattr a user.x; fsync a",
        "a@user.x:79",
        "fsync a (operation 4) had returned, but attribute user.x of a is b'y'; it promised missing",
    ),
    (
        "mkdir D",
        "setxattr D user.x y; fsync D",
        "D/",
        "fsync D (operation 3) had returned, but attribute user.x of D is missing; it promised b'y'",
    ),
    ("", "symlink t l; sync", "l->u", "sync (operation 2) had returned, but l points to 'u'; it promised 't'"),
    # Bugs that CrashMonkey found in btrfs: a name is lost although its directory was fsynced
    (
        "",
        "mkdir A; creat A/bar; sync; mkdir B; creat B/bar; rename B/bar A/bar; creat A/foo; fsync A/foo; fsync A",
        "A/ A/foo",
        "sync (operation 3) had returned, but A/bar is missing",
    ),
    (
        "",
        "creat a; write a 0 16384; fsync a; fallocate a keep-size 16384 4096; fsync a",
        "a=w0:20480",
        "fsync a (operation 3) had returned, but a is 20480 bytes long; it promised 16384",
    ),
    # A name that stood for a file and stands for a directory now: the entries of the directory are still promised.
    ("creat a; mkdir D; creat D/b", "exchange D a", "D a/", "the set-up was durable, but a/b is missing"),
    # A new directory has the name of a durable one that was renamed, and cannot be that one, which has a name in it.
    (
        "mkdir D; creat D/a",
        "rename D E; mkdir D",
        "D/",
        "the set-up was durable, but what was D then is not there as D or E",
    ),
]


@pytest.mark.parametrize(("setup", "operations", "tree"), FINE)
def test_no_false_alarm(setup: str, operations: str, tree: str) -> None:
    assert check(setup, operations, tree) == ""


@pytest.mark.parametrize(("setup", "operations", "tree", "message"), BROKEN)
def test_a_broken_promise_is_found(setup: str, operations: str, tree: str, message: str) -> None:
    assert check(setup, operations, tree) == message


def test_an_operation_in_progress_promises_nothing() -> None:
    assert check("", "creat a; sync", "", started=2, returned=1) == ""
    assert check("", "creat a; sync", "", started=2, returned=2) != ""


def test_an_o_sync_write_that_had_not_returned_may_be_cut_short() -> None:
    assert check("creat a", "write-osync a 0 8192", "a=w0:4096", started=1, returned=0) == ""
    assert check("creat a", "write-osync a 0 8192", "a=w0:4096+zero:4096", started=1, returned=0) == ""
    assert check("creat a", "write-osync a 0 8192", "a=w0:4096", started=1, returned=1) != ""


def test_an_operation_that_had_not_started_excuses_nothing() -> None:
    assert check("creat a", "unlink a", "", started=0, returned=0) == "the set-up was durable, but a is missing"
    assert check("creat a", "unlink a", "", started=1, returned=0) == ""


def test_before_recording_begins_nothing_is_promised() -> None:
    (workload,) = family(("litmus", "creat a; sync", "creat b"))
    assert (
        Durability().examine(History(workload, 2, 1), Observation(0, Tree([Entry(".", "dir")]))).verdict
        is Verdict.HOLDS
    )


def test_the_finding_has_the_path() -> None:
    (workload,) = family(("litmus", "", "mkdir D; creat D/a; sync"))
    observed = Tree([Entry(".", "dir"), Entry("D", "dir")])
    expected = violated("sync (operation 3) had returned, but D/a is missing", "D/a")
    assert Durability().examine(History(workload, 3, 3), Observation(0, observed)) == expected


def test_a_failed_mount_is_another_checkers_business() -> None:
    (workload,) = family(("litmus", "", "creat a; sync"))
    assert Durability().check(History(workload, 2, 2), Observation(5, Tree())).verdict is Verdict.UNDECIDED


def test_an_unreadable_file_has_lost_its_contents() -> None:
    (workload,) = family(("litmus", "", "creat a; append a 10; sync"))
    observed = Tree([Entry(".", "dir"), Entry("a", "file", error=5)])
    finding = Durability().examine(History(workload, 3, 3), Observation(0, observed))
    assert finding.verdict is Verdict.VIOLATED
    assert finding.message == "sync (operation 3) had returned, but a cannot be read (errno 5)"


@pytest.mark.parametrize(("word", "prop"), [("write-osync", "D-osync-data"), ("write-odsync", "D-odsync-data")])
def test_a_synchronous_write_that_was_cut_short_promises_nothing(word: str, prop: str) -> None:
    setup, operation, cut = "creat a; append a 8192", f"{word} a 0 8192", "a=w1:4096+w0:4096"
    assert check(setup, operation, cut, started=1, returned=0) == ""
    assert f"{operation} (operation 3) had returned, but a is" in check(setup, operation, cut, started=1, returned=1)
    (workload,) = family(("cut", setup, operation))
    tree = Tree([Entry(".", "dir"), entry_of(cut)])
    shown = Observation(0, tree)
    before, after = (property_named(prop).examine(History(workload, 3, returned), shown) for returned in (2, 3))
    assert (before.relevant, before.verdict) == (False, Verdict.HOLDS)
    assert (after.relevant, after.verdict) == (True, Verdict.VIOLATED)


@pytest.mark.parametrize(
    ("operations", "inodes", "message"),
    [
        ("unlink b; link a b; sync", {"a": 1, "b": 1}, ""),
        ("unlink b; link a b", {"a": 1, "b": 1}, ""),
        ("unlink b; link a b", {"a": 1, "b": 2}, ""),
        ("unlink b; link a b; sync", {"a": 1, "b": 2}, "two inodes; they were names of one"),
        ("sync; creat c", {"a": 1, "b": 1}, "one inode; they were two"),
        ("link a c; sync", {"a": 1, "b": 2, "c": 2}, "two inodes; they were names of one"),
    ],
)
def test_names_of_one_inode_are_told_from_names_of_two(operations: str, inodes: dict[str, int], message: str) -> None:
    """The types and contents of the names are the same."""
    (workload,) = family(("litmus", "creat a; creat b", operations))
    count = len(workload.operations)
    files = [Entry(path, "file", inode=inode) for path, inode in inodes.items()]
    found = Durability().examine(History(workload, count, count), Observation(0, Tree([Entry(".", "dir"), *files])))
    assert found.message.endswith(message)
    assert (found.verdict is Verdict.VIOLATED) == bool(message)


def test_confused_names_are_said_to_be_known_since_what_settled_the_directories_above_them() -> None:
    """Nothing but the fsync of the root says which directories A and B are."""
    (workload,) = family(("litmus", "", "mkdir A; mkdir B; creat A/x; creat B/y; fsync ."))
    tree = Tree(
        [*(Entry(path, "dir") for path in (".", "A", "B")), *(Entry(p, "file", inode=9) for p in ("A/x", "B/y"))]
    )
    found = Durability().examine(History(workload, 5, 5), Observation(0, tree))
    assert found.verdict is Verdict.VIOLATED
    assert found.message == "fsync . (operation 5) had returned, but A/x and B/y are one inode; they were two"
