"""Litmus table of the properties that are rows: OSDI'14, SQLite, atomicity, order and durability."""

from collections.abc import Callable

import pytest

from postcrash.model import Entry, History, Observation, Tree, Verdict
from postcrash.model.choices import UndecidedBytes, every_answer
from postcrash.model.judge import UNTESTED, Opinion
from postcrash.model.segments import Segment
from postcrash.properties import Property, property_named
from postcrash.properties.family import family

BLOCK = "creat a; append a 4096"
LONG = "creat a; append a 8192"
TAKEN = "append a 4096; fsync a; rename a b; creat a"
"""After it `a` is another file than before."""
TWO = f"{BLOCK}; creat b; append b 4096"
OTHER = f"{BLOCK}; creat q; append q 4096"

# property, set-up, operations, tree after the crash, holds, relevant
ROWS = [
    # Writes are whole or not at all.
    ("O-sector-overwrite", BLOCK, "write a 512 512", "a=w0:4096", True, False),
    ("O-sector-overwrite", BLOCK, "write a 512 512", "a=w0:512+w1:512+w0:3072", True, True),
    ("O-sector-overwrite", BLOCK, "write a 512 512", "a=w0:512+w1:100+w0:3484", False, True),
    ("O-sector-overwrite", BLOCK, "write a 512 512", "a=w0:512+stale:512+w0:3072", False, True),
    ("O-sector-overwrite", BLOCK, "write a 500 100", "a=w0:500+w1:10+w0:3586", True, False),
    ("O-sector-append", BLOCK, "append a 512", "a=w0:4096+zero:512", False, True),
    ("O-sector-append", BLOCK, "append a 512", "a=w0:4096+w1:512", True, True),
    ("O-sector-append", BLOCK, "append a 512", "a=w0:4096+w1:500", False, True),
    ("O-block-overwrite", LONG, "write a 4096 4096", "a=w0:4096+w1:512+w0:3584", False, True),
    ("O-block-append", "", "creat a; append a 4096", "a=stale:4096", False, True),
    ("O-block-append", "", "creat a; append a 4096", "a", True, False),
    ("O-block-append", "", "creat a; append a 4096", "", True, False),
    ("O-blocks", LONG, "write a 0 8192", "a=w0:4096+w1:4096", False, True),
    ("O-blocks", BLOCK, "append a 8192", "a=w0:4096+w1:4096", False, True),
    ("O-prefix-append", BLOCK, "append a 8192", "a=w0:4096+w1:4096", True, True),
    ("O-prefix-append", BLOCK, "append a 8192", "a=w0:4096+zero:4096+w1:4096", False, True),
    ("S-safe-append", BLOCK, "append a 8192", "a=w0:4096+w1:4096+stale:4096", False, True),
    ("S-atomic-512", BLOCK, "write a 512 512", "a=w0:512+zero:512+w0:3072", False, True),
    ("S-atomic-4k", LONG, "write a 0 4096", "a=w1:512+w0:7680", False, True),
    ("S-atomic-4k", LONG, "write a 0 512", "a=w1:100+w0:8092", True, False),
    ("S-atomic", LONG, "write a 4000 200", "a=w0:4000+w1:96+w0:4096", False, True),
    ("A-mmap", LONG, "mmapwrite a 0 4096", "a=w1:512+w0:7680", False, True),
    ("A-direct", LONG, "dwrite a 0 4096", "a=w1:512+w0:7680", False, True),
    ("A-untorn", LONG, "awrite a 0 8192", "a=w1:4096+w0:4096", False, True),
    ("A-untorn", LONG, "awrite-odsync a 0 4096", "a=w1:512+w0:7680", False, True),
    ("A-untorn", LONG, "awrite a 0 8192", "a=w0:8192", True, False),
    ("A-untorn", LONG, "awrite a 0 8192", "a=w1:8192", True, True),
    ("A-untorn", "creat a; truncate a 8192", "awrite a 0 8192", "a=w0:4096+zero:4096", False, True),
    ("A-untorn", LONG, "dwrite a 0 8192", "a=w1:4096+w0:4096", True, False),
    # msync of nothing
    ("P4", "", "creat a; msync a", "", True, False),
    ("P4", "", "creat a; append a 4096; msync a", "", False, True),
    # A name that is first in the alphabet, and another file's before
    ("D-sync-xattr", "creat a", "unlink a; creat b; link b a; setxattr b user.x 1; sync", "a*2 b*2", False, True),
    # Appends that are not aligned
    ("S-atomic-512", "creat b; append b 100", "append b 512; creat c", "b=w0:100+w1:412", True, False),
    ("S-atomic-4k", "creat b; append b 512", "append b 4096; creat c", "b=w0:512+w1:3584", True, False),
    # A name for an open file
    ("P1", "creat b", "open b; link @b c", "b*2 c*2", True, False),
    ("P1", "creat b; creat c", "unlink b; open c; link @c d", "c*2 d*2", True, True),
    # Bytes beside a write
    ("S-powersafe-overwrite", LONG, "write a 5000 100", "a=w0:5000+w1:100+w0:3092", True, True),
    ("S-powersafe-overwrite", LONG, "write a 5000 100", "a=w0:5000+w1:100+zero:3092", False, True),
    ("S-powersafe-overwrite", LONG, "write a 5000 100", "a=stale:5000+w1:100+w0:3092", False, True),
    ("S-powersafe-overwrite", LONG, "write a 5000 100", "a=stale:8192", False, True),
    ("S-powersafe-overwrite", LONG, "write a 5000 100", "a=w0:8192", True, True),
    ("S-powersafe-overwrite", "creat a; append a 1000", "append a 100; fsync a", "a=stale:1100", False, True),
    # Directory operations
    ("O-dir", "creat a", "rename a b", "a b", False, True),
    ("O-dir", "creat a", "rename a b", "", False, True),
    ("O-dir", "creat a", "rename a b", "b", True, True),
    ("O-dir", "creat a", "rename a b", "a", True, False),
    ("O-dir", "", "mkdir D", "D", False, True),
    ("A-rename", TWO, "rename b a", "a=w1:4096", True, True),
    ("A-rename", TWO, "rename b a", "a=w0:4096 b=w1:4096", True, False),
    ("A-rename", TWO, "rename b a", "a=w0:4096", False, True),
    ("A-rename", TWO, "rename b a", "a=w1:4096 b=w1:4096", False, True),
    ("A-rename", TWO, "rename b a", "b=w1:4096", False, True),
    ("A-rename", TWO, "rename b a", "a=zero:4096", False, True),
    ("A-exchange", TWO, "exchange a b", "a=w1:4096 b=w0:4096", True, True),
    ("A-exchange", TWO, "exchange a b", "a=w1:4096 b=w1:4096", False, True),
    ("A-exchange", TWO, "exchange a b", "a=w0:4096 b=w1:4096", True, False),
    ("A-link", "creat a", "link a b", "a*2 b*2", True, True),
    ("A-link", "creat a", "link a b", "a b", False, True),
    ("A-link", "creat a", "link a b", "a*2", False, True),
    ("A-unlink", "creat a; link a b", "unlink b", "a", True, True),
    ("A-unlink", "creat a; link a b", "unlink b", "a*2", False, True),
    ("A-unlink", "creat a; link a b", "unlink b", "a*2 b*2", True, False),
    ("A-symlink", "", "symlink there s", "s>there", True, True),
    ("A-symlink", "", "symlink there s", "s>ther", False, True),
    ("A-symlink", "", "symlink there s", "s>", False, True),
    ("A-symlink", "", "symlink there s", "", True, False),
    # Sizes, holes, attributes
    ("A-truncate", LONG, "truncate a 100", "a=w0:100", True, True),
    ("A-truncate", LONG, "truncate a 100", "a=w0:4096", False, True),
    ("A-truncate", BLOCK, "truncate a 8192", "a=w0:4096+stale:4096", False, True),
    ("A-fallocate", BLOCK, "fallocate a none 0 8192", "a=w0:4096+zero:4096", True, True),
    ("A-fallocate", BLOCK, "fallocate a none 0 8192", "a=w0:4096+stale:4096", False, True),
    ("A-punch", LONG, "fallocate a punch-hole 0 8192", "a=zero:4096+w0:4096", False, True),
    ("A-punch", LONG, "fallocate a punch-hole 0 8192", "a=zero:8192", True, True),
    ("A-zero-range", BLOCK, "fallocate a zero-range 0 8192", "a=w0:4096+zero:4096", False, True),
    ("A-xattr", "creat a", "setxattr a user.x a", "a@user.x:61", True, True),
    ("A-xattr", "creat a", "setxattr a user.x a", "a@user.x:62", False, True),
    # Order
    ("O-overwrite-any", OTHER, "write a 0 4096; creat c", "a=w0:4096 q=w1:4096 c", False, True),
    ("O-overwrite-any", OTHER, "write a 0 4096; creat c", "a=w2:4096 q=w1:4096 c", True, True),
    ("O-overwrite-any", OTHER, "write a 0 4096; creat c", "a=w0:4096 q=w1:4096", True, False),
    ("O-append-any", OTHER, "append a 100; write q 0 4096", "a=w0:4096 q=w3:512+w1:3584", False, True),
    ("O-append-append", BLOCK, "append a 10; append a 10", "a=w0:4096+zero:10+w2:10", False, True),
    ("O-append-append", OTHER, "append a 10; append q 10", "a=w0:4096 q=w1:4096+w3:10", True, False),
    ("O-append-rename-any", BLOCK, "creat b; append b 10; rename b a; creat c", "a=w0:4096 b=w1:10 c", False, True),
    ("O-append-rename-any", BLOCK, "creat b; append b 10; rename b a; creat c", "a=zero:10 c", False, True),
    ("O-append-rename-any", BLOCK, "creat b; append b 10; rename b a; creat c", "a=w1:10 c", True, True),
    ("O-trunc-append-any", BLOCK, "truncate a 0; append a 10; creat c", "a c", False, True),
    ("O-trunc-append-any", BLOCK, "truncate a 0; append a 10; creat c", "a=w0:4096 c", False, True),
    ("O-trunc-append-any", BLOCK, "truncate a 0; append a 10; creat c", "a=w1:10 c", True, True),
    ("O-dir-any", BLOCK, "creat b; write a 0 4096", "a=w1:4096", False, True),
    ("S-sequential", TWO, "write b 0 10; write a 0 10", "a=w3:10+w0:4086 b=w1:4096", False, True),
    ("R-same-file", LONG, "write a 0 10; write a 4096 10", "a=w0:4096+w2:10+w0:4086", False, True),
    ("R-two-files", LONG, "write a 0 10; write a 4096 10", "a=w0:4096+w2:10+w0:4086", True, False),
    ("R-two-dirs", "mkdir D", "creat D/a; creat b", "D/ b", False, True),
    ("R-two-dirs", "", "creat a; creat b", "b", True, False),
    ("R-append-dir", BLOCK, "append a 10; creat b", "a=w0:4096 b", False, True),
    ("R-dir-append", BLOCK, "creat b; append a 10", "a=w0:4096+w1:10", False, True),
    ("R-rename-new", "", "creat b; append b 10; rename b a", "a", False, True),
    ("R-rename-new", "", "creat b; append b 10; rename b a", "a=w0:10", True, True),
    ("R-rename-new", "", "creat b; append b 10; rename b a", "b", True, False),
    ("R-rename-new", "", "creat b; append b 10; mmapwrite b 0 10; rename b a", "a=w0:10", True, True),
    ("R-rename-new", "creat b; append b 10", "mmapwrite b 0 10; rename b a", "a=w0:10", True, False),
    ("R-fallocate-any", LONG, "fallocate a punch-hole 0 4096; creat b", "a=w0:8192 b", False, True),
    ("R-truncate-any", LONG, "truncate a 10; creat b", "a=w0:8192 b", False, True),
    ("R-mmap-any", LONG, "mmapwrite a 0 10; creat b", "a=w0:8192 b", False, True),
    ("R-direct-any", LONG, "dwrite a 0 512; creat b", "a=w0:8192 b", False, True),
    ("R-xattr-any", "creat a", "setxattr a user.x a; creat b", "a b", False, True),
    # Durability
    ("S-sync-dir", "", "creat a", "", False, True),
    ("D-return-data", BLOCK, "write a 0 10", "a=w0:4096", False, True),
    ("D-return-data", BLOCK, "mmapwrite a 0 10", "a=w0:4096", True, False),
    ("D-fsync-data", BLOCK, "mmapwrite a 0 10; fsync a", "a=w0:4096", False, True),
    ("D-fsync-data", BLOCK, "write a 0 10; fsync a", "a=w0:4096", False, True),
    ("D-fsync-data", BLOCK, "write a 0 10", "a=w0:4096", True, False),
    ("D-fsync-data", "", "creat a; append a 10; fsync a", "", True, False),
    ("D-fsync-data", "", "creat a; append a 10; fsync a", "a", False, True),
    ("D-fsync-data", BLOCK, "fsync a; write a 0 10", "a=w0:4096", True, False),
    ("D-fsync-data", TWO, "write a 0 10; fsync b", "a=w0:4096 b=w1:4096", True, False),
    ("D-fsync-data", BLOCK, "write a 0 10; fsync a; truncate a 0", "a", True, False),
    ("D-fdatasync-size", BLOCK, "truncate a 10; fdatasync a", "a=w0:4096", False, True),
    ("D-sync-name", "", "creat a; sync", "", False, True),
    ("D-fsync-name", "", "creat a; fsync a", "", False, True),
    ("D-dir-name", "mkdir D", "creat D/a; fsync D", "D/", False, True),
    ("D-dir-name", "mkdir D", "creat D/a; fsync .", "D/", True, False),
    ("D-dir-rename", "creat a", "rename a b; fsync .", "a", False, True),
    ("D-dir-link", "creat a", "link a b; fsync .", "a", False, True),
    ("D-syncfs-xattr", "creat a", "setxattr a user.x a; syncfs", "a", False, True),
    ("D-fsync-hole", BLOCK, "fallocate a punch-hole 0 4096; fsync a", "a=w0:4096", False, True),
    ("D-msync-data", BLOCK, "mmapwrite a 0 10; msync a", "a=w0:4096", False, True),
    ("D-osync-data", BLOCK, "write-osync a 0 10", "a=w0:4096", False, True),
    ("D-odsync-data", BLOCK, "write-odsync a 0 10", "a=w0:4096", False, True),
    ("D-osync-data", BLOCK, "write-odsync a 0 10", "a=w0:4096", True, False),
    # An fsync of a file is none of its directory, and the other way round.
    ("D-dir-name", "", "creat a; fsync a", "", True, False),
    ("D-dir-name", "", "creat a; fsync .", "", False, True),
    ("D-fdatasync-dir-name", "", "creat a; fdatasync .", "", False, True),
    ("D-fdatasync-dir-name", "", "creat a; fsync .", "", True, False),
    ("D-fdatasync-dir-rename", "creat a", "rename a b; fdatasync .", "a", False, True),
    ("D-fdatasync-dir-link", "creat a", "link a b; fdatasync .", "a", False, True),
    ("D-fsync-name", "", "creat a; fsync .", "", True, False),
    ("D-fsync-name", "", "creat a; fsync a", "", False, True),
    ("D-fsync-rename", "creat b", "rename b a; fsync .", "b", True, False),
    # How many names a file has stands in the file.
    ("D-dir-link", "creat b", "link b a; fsync .", "a*1 b*1", True, True),
    ("D-dir-link", "creat b", "link b a; fsync .", "b*1", False, True),
    ("D-fsync-link", "creat b", "link b a; fsync a", "a*1 b*1", False, True),
    ("A-link", "", "creat a; link a b", "a*1 b*1", False, True),
    ("O-dir", "", "creat a; link a b", "a*1 b*1", False, True),
    # Nobody promises the name of a directory that was moved.
    ("D-dir-name", "mkdir D", "rename D E; creat E/a; fsync E", "D/ D/a", True, False),
    ("D-sync-name", "mkdir D", "rename D E; creat E/a; sync", "D/ D/a", False, True),
    # A file is the same by each of its names.
    ("R-same-file", f"{LONG}; link a b", "write a 0 4096; write b 4096 4096", "a*2=w0:4096+w2:4096", False, True),
    ("R-two-files", f"{LONG}; link a b", "write a 0 4096; write b 4096 4096", "a*2=w0:4096+w2:4096", True, False),
    ("R-same-file", LONG, "write a 0 4096; rename a b; write b 4096 4096", "b=w0:4096+w2:4096", False, True),
    ("R-two-files", LONG, "write a 0 4096; rename a b; write b 4096 4096", "b=w0:4096+w2:4096", True, False),
    ("P3", "", "creat a; append a 10; link a l; creat b; append b 10", "l*1=w0:10 b=w1:10", True, True),
    ("P3", "", "creat a; append a 10; link a l; creat b; append b 10", "l*1 b=w1:10", False, True),
    # An old file is not the new one that may have its name, but a file that it never was is.
    ("D-fsync-data", "creat b; append b 10", "creat a; append a 20; fsync a; rename a b", "b=w0:10", True, False),
    ("D-fsync-data", "creat b", "creat a; append a 20; fsync a; rename a b", "b", True, False),
    ("D-fsync-data", "creat b; append b 10", "creat a; append a 20; fsync a; rename a b", "b=zero:20", False, True),
    ("D-fsync-data", "creat b; append b 10", "creat a; append a 20; fsync a; rename a b", "a b=w0:10", False, True),
    ("D-osync-data", "creat b", "creat a; write-osync a 0 20; rename a b", "b", True, False),
    # A file and a directory can be exchanged, and both are told by their types.
    ("A-exchange", "creat a; mkdir D", "exchange a D", "a D", False, True),
    ("A-exchange", "creat a; mkdir D", "exchange a D", "a/ D/", False, True),
    ("A-exchange", "creat a; mkdir D", "exchange a D", "a/ D", True, True),
    ("A-exchange", "creat a; mkdir D", "exchange a D", "a D/", True, False),
    # The name that a rename gives must be there, and a link takes nothing from where the file is.
    ("R-rename-new", "creat b", "append b 4096; rename b a", "", True, False),
    ("R-rename-new", "creat b", "append b 4096; rename b a", "a", False, True),
    ("R-two-dirs", "mkdir D; mkdir E; creat D/s", "link D/s E/l; creat E/c", "D/ E/ D/s E/c", True, False),
    ("R-two-dirs", "mkdir D; mkdir E; creat D/s", "link D/s E/l; creat D/c", "D/ E/ D/s D/c", False, True),
    # A name that is given to another file later does not tell what became of the first one's size or attributes.
    ("D-fsync-data", "creat a", TAKEN, "a=w0:4096", True, True),
    ("D-fsync-data", "creat a", TAKEN, "b", False, True),
    ("D-fsync-data", "creat a", TAKEN, "b=zero:4096", False, True),
    ("O-block-append", "creat a", f"{TAKEN}; creat c", "a=w0:4096 c", True, True),
    ("O-block-append", "creat a", f"{TAKEN}; creat c", "b=zero:4096 c", False, True),
    ("S-atomic-4k", "creat a", TAKEN, "a=w0:4096", True, True),
    ("S-atomic-4k", "creat a", TAKEN, "a=w0:512+zero:3584", False, True),
    ("S-atomic-4k", "creat a", TAKEN, "b=w0:512", False, True),
    ("D-fsync-xattr", "creat a", "setxattr a user.x a; fsync a; rename a b; creat a", "a", True, False),
    ("D-fsync-xattr", "creat a", "setxattr a user.x a; fsync a; rename a b; creat a", "b", False, True),
]


@pytest.mark.parametrize(("name", "setup", "operations", "tree", "holds", "relevant"), ROWS)
def test_litmus(
    judge: Callable[[Property, str, str, str], Opinion],
    name: str,
    setup: str,
    operations: str,
    tree: str,
    holds: bool,
    relevant: bool,
) -> None:
    judgement = judge(property_named(name), setup, operations, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (holds, relevant), judgement.message


def test_nothing_is_promised_of_what_has_not_returned() -> None:
    (workload,) = family(("litmus", BLOCK, "write a 0 4096; fsync a"))
    (old, new) = (History(workload, 4, 3), History(workload, 4, 4))
    tree = new.trees[2]
    assert property_named("D-fsync-data").examine(old, Observation(0, tree)) == UNTESTED
    assert property_named("D-fsync-data").examine(new, Observation(0, tree)).verdict is Verdict.VIOLATED


def test_a_choice_of_contents_is_asked_for_every_answer() -> None:
    (workload,) = family(("litmus", LONG, "write a 0 8192"))
    choices = tuple(
        UndecidedBytes(
            start, start + 4096, number, tuple((Segment(start, start + 4096, f"write:{tag}"),) for tag in (0, 1))
        )
        for number, start in enumerate((0, 4096))
    )
    tree = Tree([Entry(".", "dir"), Entry("a", "file", nlink=1, size=8192, choices=choices)])
    checked = property_named("O-blocks")
    answers = [
        (judgement.verdict is Verdict.HOLDS, versions)
        for judgement, versions in every_answer(lambda: checked.examine(History(workload, 3, 3), Observation(0, tree)))
    ]
    assert sorted(versions[0] == versions[1] for _, versions in answers) == [False, False, True, True]
    assert all(holds == (versions[0] == versions[1]) for holds, versions in answers)


def test_messages_name_operations_and_what_was_found(judge: Callable[[Property, str, str, str], Opinion]) -> None:
    assert judge(property_named("O-blocks"), LONG, "write a 0 8192", "a=w0:4096+w1:4096").message == (
        "write a 0 8192 (operation 3) is there in part: a is 8192 bytes long; of its bytes, "
        "0 to 4096 are those of append a 8192, 4096 to 8192 are those of write a 0 8192"
    )
    assert judge(property_named("O-dir-any"), BLOCK, "creat b; write a 0 4096", "a=w1:4096").message == (
        "write a 0 4096 (operation 4) is visible, but not whole is creat b (operation 3) before it: b is not there"
    )
    assert judge(property_named("D-sync-name"), "", "creat a; sync", "").message == (
        "sync (operation 2) after creat a (operation 1) had returned, but a is not there"
    )
