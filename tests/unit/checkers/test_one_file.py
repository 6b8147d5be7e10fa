"""Files that had one name, and inodes each of another time: what is legal, and what nobody can tell from it."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from postcrash.checkers.durability import Durability
from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.checkers.inode_history import inode_history
from postcrash.checkers.never_written import NeverWritten
from postcrash.model import History, Observation, Tree, Verdict, Workload
from postcrash.workloads import GRAMMARS
from postcrash.workloads.random import Pool

from .test_durability import check

OLD = "creat a; append a 8192"
NEW = "creat b; append b 8192"
SHARING = "creat b; reflink a 0 b 0 4096"

# set-up, operations (all returned), tree after the crash
FINE = [
    # Nothing has settled the name yet.
    (OLD, f"{NEW}; rename b a", "a=w0:8192"),
    (OLD, f"{NEW}; rename b a", "a=w0:8192 b=w1:8192"),
    (OLD, f"{NEW}; fsync .; rename b a", "a=w0:8192 b"),
    (OLD, "unlink a; creat a; append a 10", "a=w0:8192"),
    ("mkdir D; " + OLD, f"{NEW}; rename b a; fsync D", "D/ a=w0:8192"),
    (OLD, f"{NEW}; rename b a; fdatasync .", "a=w0:8192"),
    # The new file has any part of what it ever was.
    (OLD, f"{NEW}; rename b a; fsync .", "a"),
    (OLD, f"{NEW}; rename b a; fsync .", "a=w1:8192"),
    (OLD, f"{NEW}; rename b a; fsync .", "a=w1:4096"),
    (OLD, f"{NEW}; rename b a; fsync .", "a=zero:4096+w1:4096"),
    (OLD, f"{NEW}; rename b a; fsync .; truncate a 0; append a 100", "a=w1:8192"),
    (OLD, f"{NEW}; rename b a; fsync .; write a 0 100", "a=w2:100+w1:8092"),
    # A block that the new file uses again still has the bytes of the old one.
    (OLD, "unlink a; sync; creat a; append a 8192; commit", "a=w0:8192"),
    (OLD, "truncate a 0; append a 8192; fsync a; creat b; append b 8192; rename b a; commit", "a=w0:8192"),
    (f"{OLD}; setxattr a user.x y", "creat b; setxattr b user.x z; rename b a; fsync .", "a@user.x:7a"),
    (f"{OLD}; setxattr a user.x y", "creat b; setxattr b user.x z; rename b a; fsync .", "a"),
    # A later operation gives the name back.
    (OLD, f"rename a c; {NEW}; rename b a; fsync .; rename c a", "a=w0:8192"),
    (OLD, f"rename a c; {NEW}; rename b a; fsync .; rename a b; rename c a", "a=w0:8192 b"),
    (OLD, f"{NEW}; exchange a b; fsync .; exchange a b", "a=w0:8192 b=w1:8192"),
    (OLD, f"{NEW}; exchange a b; fsync .; exchange a b", "a b=w0:8192"),
    (OLD, f"link a c; {NEW}; rename b a; fsync .; rename c a", "a=w0:8192"),
    # Another name of the old file
    (OLD, f"link a c; {NEW}; rename b a; fsync .", "a=w1:8192 c=w0:8192"),
    (OLD, f"link a c; {NEW}; unlink a; link c a; fsync .", "a=w0:8192 b c=w0:8192"),
    # The new file shares bytes of the old one, at the same place and at another one.
    (OLD, f"{SHARING}; rename b a; fsync .", "a=w0:4096"),
    (OLD, f"{SHARING}; append b 4096; rename b a; fsync .", "a=w0:4096+w1:4096"),
    (OLD, "creat b; reflink a 4096 b 0 4096; rename b a; fsync .", "a=w0>-4096:4096"),
    (OLD, "creat b; reflink a 0 b 0 8192; rename b a; fsync .", "a=w0:8192"),
    # A shift of the new file is lost, and a later write is not.
    (
        OLD,
        f"{NEW}; rename b a; fsync .; fallocate a collapse-range 0 4096; dwrite a 0 512",
        "a=w1:4096+w2>4096:512+w1:3584",
    ),
    # Bytes that no file with the name ever had are the business of foreign-bytes, and so are mixtures.
    (OLD, f"{NEW}; rename b a; fsync .", "a=stale:8192"),
    (OLD, f"{NEW}; rename b a; fsync .", "a=w0:4096+w1:4096"),
    # Directories
    ("mkdir D; creat D/a; append D/a 10", "rename D E; mkdir D; creat D/a; append D/a 20", "D/ D/a=w0:10"),
    (
        "mkdir D; creat D/a; append D/a 10",
        "rename D E; mkdir D; fsync .; creat D/a; append D/a 20",
        "D/ D/a E/ E/a=w0:10",
    ),
    ("creat a; append a 10", "unlink a; mkdir a", "a=w0:10"),
    ("creat a; append a 10", "unlink a; mkdir a; fsync .", "a/"),
]


@pytest.mark.parametrize(("setup", "operations", "tree"), FINE)
def test_no_false_alarm(setup: str, operations: str, tree: str) -> None:
    assert check(setup, operations, tree) == ""


# A file system that writes inodes and names one by one


FULL = GRAMMARS["full"]


def drawn() -> list[Workload]:
    pool = Pool(FULL, 17)
    workloads = (pool.draw(number).workload(f"drawn-{number}", FULL) for number in range(120))
    return [workload for workload in workloads if len(workload.operations) < 60]


def outcomes(random: Random, history: History) -> Iterator[Tree]:
    """Trees with the names of any time since the last barrier, each inode as at a time of its own since then."""
    done = enumerate(history.workload.operations[: history.returned], 1)
    first = len(history.workload.setup)
    since = max([first, *(number for number, operation in done if operation.form.persistence and number > first)])
    known = inode_history(history.workload)
    for tree in history.possible_trees(since):
        states = {
            inode: random.choice(known.states(inode, since, history.started))
            for inode in {tree[path].inode for path in tree.paths()}
        }
        yield Tree(replace(states[entry.inode], path=path) for path, entry in tree.items())


@pytest.mark.parametrize("workload", drawn(), ids=lambda workload: workload.name)
def test_each_inode_may_be_of_another_time(workload: Workload) -> None:
    random = Random(workload.name)
    first, count = len(workload.setup), len(workload.operations)
    for returned in range(first, count + 1):
        history = History(workload, min(returned + random.randrange(2), count), returned)
        for tree in outcomes(random, history):
            for checker in (Durability(), ForeignBytes(), NeverWritten()):
                assert checker.examine(history, Observation(0, tree)).verdict is Verdict.HOLDS, (
                    workload.to_text(),
                    history,
                    tree,
                )
