"""The never-written checker: names that nothing made, and names that are only out of order."""

import pytest

from postcrash.checkers.never_written import NeverWritten
from postcrash.model import Entry, History, Observation, Tree, Verdict, parse_workload
from postcrash.model.judge import violated

# workload, names after the crash, the name that nothing made
ROWS = [
    ("creat a; creat b", "", None),
    ("creat a; creat b", "a b", None),
    ("creat a; creat b", "b", None),
    ("creat a", "c", "c"),
    ("creat a", "a .a.tmp", ".a.tmp"),
    ("creat a", "lost+found/", None),
    ("creat a", "lost+found/ lost+found/#12", "lost+found/#12"),
    ("mkdir D; creat D/a; mkdir E", "D/ E/ E/a", "E/a"),
    ("mkdir D; creat D/a", "D/ a", "a"),
    ("creat a; rename a b", "a b", None),
    ("creat a; unlink a", "a", None),
    ("creat a; link a b", "b", None),
    # A rename of a directory that is not there yet, and a file that was made under the new name
    ("mkdir D; rename D E; creat E/a", "D/ D/a", None),
    ("mkdir D; rename D E; mkdir D; creat E/a", "D/ D/a E/", None),
    ("mkdir D; mkdir E; creat E/a", "D/ D/a", "D/a"),
]


def tree_of(names: str) -> Tree:
    entries = [Entry(name.rstrip("/"), "dir" if name.endswith("/") else "file") for name in names.split()]
    return Tree([Entry(".", "dir"), *entries])


@pytest.mark.parametrize(("operations", "names", "path"), ROWS)
def test_litmus(operations: str, names: str, path: str | None) -> None:
    workload = parse_workload(operations.replace("; ", "\n"), "litmus")
    count = len(workload.operations)
    finding = NeverWritten().examine(History(workload, count, count), Observation(0, tree_of(names)))
    if path:
        assert finding == violated(f"{path} is there, but no operation made it", path)
    else:
        assert finding.verdict is Verdict.HOLDS


def test_an_operation_that_had_not_started_made_nothing() -> None:
    workload = parse_workload("creat a\ncreat b", "litmus")
    observation = Observation(0, tree_of("a b"))
    assert NeverWritten().examine(History(workload, 1, 1), observation).verdict is Verdict.VIOLATED
    assert NeverWritten().examine(History(workload, 2, 1), observation).verdict is Verdict.HOLDS


def test_a_failed_mount_shows_no_names() -> None:
    workload = parse_workload("creat a", "litmus")
    assert NeverWritten().check(History(workload, 1, 1), Observation(5, Tree())).verdict is Verdict.UNDECIDED


USER_K = (("user.k", "76"),)
SYNCED = "sync (operation {}) had returned, but b is not what the name stands for since then: "
NOT_IN_D = "sync (operation 5) had returned, but D/b is there; its directory never had it"

# workload, what is found, and what it never was
PASTS = [
    ("creat a; append a 10", Entry("a", "file", size=10), None),
    ("creat a; append a 10", Entry("a", "file", size=11), "a is 11 bytes long, but it never had more than 10"),
    ("creat a; append a 10; truncate a 0", Entry("a", "file", size=10), None),
    ("creat a; append a 10; rename a b", Entry("b", "file", size=10), None),
    ("creat a; append a 10; creat b", Entry("b", "file", size=10), "b is 10 bytes long, but it never had more than 0"),
    ("creat a; unlink a; mkdir a", Entry("a", "file"), None),
    ("creat a; unlink a", Entry("a", "dir"), "a is a dir, which it never was"),
    ("symlink x s", Entry("s", "symlink", target="x"), None),
    ("symlink x s", Entry("s", "symlink", target=""), "s points to '', but no operation made it point there"),
    ("mknod c char", Entry("c", "char", target="1:3"), None),
    ("mknod c char", Entry("c", "char", target="1:5"), "c is the char device 1:5, but no operation made that"),
    ("mknod c char", Entry("c", "fifo"), "c is a fifo, which it never was"),
    ("creat a; setxattr a user.k v", Entry("a", "file", xattrs=(("user.k", "76"),)), None),
    ("creat a; setxattr a user.k v; removexattr a user.k", Entry("a", "file", xattrs=(("user.k", "76"),)), None),
    ("creat a", Entry("a", "file", xattrs=(("security.selinux", "00"),)), None),
    # Several files had the name: what is found is one of them.
    ("creat a; append a 10; unlink a; creat a", Entry("a", "file", size=10), None),
    ("creat a; setxattr a user.k v; unlink a; creat a; append a 10", Entry("a", "file", xattrs=USER_K), None),
    ("creat a; setxattr a user.k v; unlink a; creat a; append a 10", Entry("a", "file", size=10), None),
    (
        "creat a; setxattr a user.k v; unlink a; creat a; append a 10",
        Entry("a", "file", size=10, xattrs=USER_K),
        "a is a mixture of what had this name: a is 10 bytes long, but it never had more than 0; as another, attribute "
        "user.k of a is b'v', but no operation set it so",
    ),
    (
        "creat a; setxattr a user.k v; creat b; append b 10; exchange a b",
        Entry("b", "file", size=10, xattrs=USER_K),
        "b is a mixture of what had this name: b is 10 bytes long, but it never had more than 0; as another, attribute "
        "user.k of b is b'v', but no operation set it so",
    ),
    (
        "creat a; setxattr a user.k v; creat b; append b 10; exchange a b; append b 10",
        Entry("b", "file", size=10, xattrs=USER_K),
        None,
    ),
    (
        "creat a; append a 10; unlink a; creat a",
        Entry("a", "file", size=11),
        "a is 11 bytes long, but it never had more than 10",
    ),
    ("mkdir a; setxattr a user.k v; rmdir a; creat a", Entry("a", "dir", xattrs=USER_K), None),
    (
        "mkdir a; setxattr a user.k v; rmdir a; creat a",
        Entry("a", "file", xattrs=USER_K),
        "a is a mixture of what had this name: a is a file, which it never was; as another, attribute user.k of a is "
        "b'v', but no operation set it so",
    ),
    ("creat a; setxattr a user.k v; unlink a; creat a", Entry("a", "file", error=5), None),
    # What lost the name for good is not what is found.
    (
        "creat b; unlink b; mkdir b; sync; rmdir b",
        Entry("b", "file"),
        SYNCED.format(4) + "b is a file, which it never was",
    ),
    (
        "creat b; unlink b; fsync .; mkdir b",
        Entry("b", "file"),
        "fsync . (operation 3) had returned, but b is not what the name stands for since then: b is a file, which it "
        "never was",
    ),
    (
        "creat b; append b 10; unlink b; sync; creat b; append b 5",
        Entry("b", "file", size=10),
        SYNCED.format(4) + "b is 10 bytes long, but it never had more than 5",
    ),
    (
        "creat b; append b 10; rename b c; sync; creat b",
        Entry("b", "file", size=10),
        SYNCED.format(4) + "b is 10 bytes long, but it never had more than 0",
    ),
    (
        "symlink x b; unlink b; sync; symlink y b",
        Entry("b", "symlink", target="x"),
        SYNCED.format(3) + "b points to 'x', but no operation made it point there",
    ),
    (
        "creat b; append b 10; unlink b; creat b; append b 10; sync; unlink b; mkdir b",
        Entry("b", "file", size=10),
        None,
    ),
    ("creat b; append b 10; rename b c; sync; creat b; rename c b", Entry("b", "file", size=10), None),
    ("creat b; append b 10; unlink b; fdatasync .; mkdir b", Entry("b", "file", size=10), None),
    ("creat b; mkdir D; unlink b; fsync D; mkdir b", Entry("b", "file"), None),
    ("creat b; unlink b; sync", Entry("b", "file"), None),
    (
        "mkdir D; creat D/b; append D/b 10; fsync .; unlink D/b; rmdir D; mkdir D; creat D/b; fsync .",
        Entry("D/b", "file", size=10),
        "fsync . (operation 9) had returned, but D/b is not what the name stands for since then: D/b is 10 bytes long, "
        "but it never had more than 0",
    ),
    (
        "mkdir D; creat D/b; append D/b 10; unlink D/b; creat D/b; fsync .; fsync D; sync; fsync D; fsync .",
        Entry("D/b", "file", size=10),
        "fsync . (operation 10) had returned, but D/b is not what the name stands for since then: D/b is 10 bytes "
        "long, but it never had more than 0",
    ),
    # The directory that has the name of another one for good never had what was in that one.
    ("mkdir D; creat D/b; rename D E; mkdir D; sync", Entry("D/b", "file"), NOT_IN_D),
    ("mkdir D; creat D/b; unlink D/b; rmdir D; mkdir D; sync", Entry("D/b", "file"), NOT_IN_D.replace("5", "6")),
    ("mkdir D; creat D/b; rename D E; mkdir D; fsync E", Entry("D/b", "file"), None),
    # That the name or its directory is there again is asked of durability.
    ("mkdir D; creat D/b; unlink D/b; sync", Entry("D/b", "file"), None),
    ("mkdir D; creat D/b; unlink D/b; rmdir D; sync", Entry("D/b", "file"), None),
    ("mkdir D; creat D/b; unlink D/b; fsync D; rename D E; mkdir D", Entry("D/b", "file"), None),
    (
        "creat a; setxattr a user.k v",
        Entry("a", "file", xattrs=(("user.k", ""),)),
        "attribute user.k of a is b'', but no operation set it so",
    ),
]


@pytest.mark.parametrize(("operations", "entry", "message"), PASTS)
def test_what_is_behind_a_name(operations: str, entry: Entry, message: str | None) -> None:
    workload = parse_workload(operations.replace("; ", "\n"), "litmus")
    count = len(workload.operations)
    finding = NeverWritten().examine(History(workload, count, count), Observation(0, Tree([Entry(".", "dir"), entry])))
    if message:
        assert finding == violated(message, entry.path)
    else:
        assert finding.verdict is Verdict.HOLDS


@pytest.mark.parametrize("returned", [2, 3])
def test_before_recording_begins_nothing_is_gone_for_good(returned: int) -> None:
    workload = parse_workload("creat b\nunlink b\nmkdir b\n---\nsync\n", "litmus")
    finding = NeverWritten().examine(History(workload, 3, returned), Observation(0, tree_of("b")))
    assert (finding.verdict is Verdict.VIOLATED) == (returned == 3)


def test_a_sync_that_has_not_returned_took_no_name_away_for_good() -> None:
    workload = parse_workload("creat b\nunlink b\nsync\nmkdir b\n", "litmus")
    for started, returned, expected in ((3, 2, False), (4, 3, True), (4, 4, True)):
        finding = NeverWritten().examine(History(workload, started, returned), Observation(0, tree_of("b")))
        assert (finding.verdict is Verdict.VIOLATED) == expected
