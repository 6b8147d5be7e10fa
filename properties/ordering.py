"""Order beyond the tables of the papers: in which order operations reach the disk, within a file and between two."""

from postcrash.properties.family import Row, endings
from postcrash.properties.kinds import (
    SHARED_EFFECTS,
    Ordered,
    Relation,
    any_later,
    other_directory,
    other_file,
    same_file,
)
from postcrash.properties.selection import (
    ALL,
    ATTRIBUTES,
    BUFFERED,
    DIRECTORY,
    UNMAPPED,
    Selector,
    is_append,
    operations,
)

SOURCE = "ours"

_TWO = "creat a; append a 8192; creat b; append b 8192"
_D_AND_E = "mkdir D; mkdir E; creat D/s; creat E/t"
_PUSHED = ("writeback b", "commit; writeback b", "fsync b")


def _ordered(
    name: str,
    title: str,
    statement: str,
    *rows: Row,
    selected: Selector,
    later: Selector,
    relation: Relation,
    is_named: bool = False,
) -> Ordered:
    return Ordered(
        name,
        title,
        statement,
        SOURCE,
        rows,
        (SHARED_EFFECTS,),
        selected=selected,
        later=later,
        relation=relation,
        is_named=is_named,
    )


_ANY = operations(*ALL)
_DATA = operations(*BUFFERED)
_APPENDS = operations(*BUFFERED, where=is_append)
_DIRECTORY = operations(*DIRECTORY)


def _then(name: str, setup: str, operation: str) -> tuple[Row, ...]:
    """`operation` and then a creation and an append, with the later one pushed out first."""
    more = f"{setup}; creat b; append b 4096"
    return (
        *endings(f"{name}-creat", more, f"{operation}; creat c", "fsync c", "commit"),
        *endings(f"{name}-append", more, f"{operation}; append b 4096", "writeback b", "fsync b"),
    )


ORDERING = (
    _ordered(
        "R-rename-new",
        "safe rename to a new name",
        "If a file was written to and renamed to a name that was free, and has that name after a crash, "
        "it has all that was written to it.",
        *endings("r-rename-4096", "", "creat b; append b 4096; rename b a", "fsync .", "commit"),
        *endings("r-rename-12288", "", "creat b; append b 12288; rename b a", "fsync .", "commit"),
        ("r-rename-commit-before", "", "creat b; append b 4096; commit; rename b a"),
        ("r-rename-writeback-before", "", "creat b; append b 4096; writeback b; rename b a"),
        ("r-rename-across-fsync-dir", "mkdir D; mkdir E", "creat D/b; append D/b 100; rename D/b E/a; fsync E"),
        selected=operations(*UNMAPPED),
        later=operations("rename", where=lambda operation, tree: operation.to not in tree),
        relation=same_file,
        is_named=True,
    ),
    _ordered(
        "R-same-file",
        "writes to one file in order",
        "If a write to a file is visible after a crash, every write to the file before it is there as a whole.",
        *endings("r-overwrites", _TWO, "write b 0 4096; write b 4096 4096", "writeback b 4096 4096", "fsync b"),
        *endings("r-overwrite-append", _TWO, "write b 0 4096; append b 4096", *_PUSHED),
        selected=_DATA,
        later=_DATA,
        relation=same_file,
    ),
    _ordered(
        "R-two-files",
        "writes to two files in order",
        "If a write to a file is visible after a crash, every write to another before it is there as a whole.",
        *endings("r-overwrites-two-files", _TWO, "write a 0 4096; write b 0 4096", *_PUSHED),
        *endings("r-appends-two-files", _TWO, "append a 4096; append b 4096", *_PUSHED),
        selected=_DATA,
        later=_DATA,
        relation=other_file,
    ),
    _ordered(
        "R-two-dirs",
        "operations in two directories in order",
        "If a directory operation is visible after a crash, every one before it in another directory is there whole.",
        *endings("r-creats-two-dirs", _D_AND_E, "creat D/a; creat E/b", "fsync E/b", "fsync E", "commit"),
        *endings("r-unlink-creat-two-dirs", _D_AND_E, "unlink D/s; creat E/b", "fsync E/b", "fsync E"),
        *endings("r-renames-two-dirs", _D_AND_E, "rename D/s D/u; rename E/t E/v", "fsync E/v", "fsync E"),
        selected=_DIRECTORY,
        later=_DIRECTORY,
        relation=other_directory,
    ),
    _ordered(
        "R-append-dir",
        "append → directory operation",
        "If a directory operation is visible after a crash, every append before it is there as a whole.",
        *endings("r-append-creat", _TWO, "append a 4096; creat c", "fsync c", "fsync .", "commit"),
        *endings("r-append-rename", f"{_TWO}; creat s", "append a 100; rename s t", "fsync t", "commit"),
        selected=_APPENDS,
        later=_DIRECTORY,
        relation=any_later,
    ),
    _ordered(
        "R-dir-append",
        "directory operation → append",
        "If an append is visible after a crash, every directory operation before it is there as a whole.",
        *endings("r-creat-append", _TWO, "creat c; append b 4096", *_PUSHED),
        *endings("r-rename-append", f"{_TWO}; creat s", "rename s t; append b 4096", *_PUSHED),
        selected=_DIRECTORY,
        later=_APPENDS,
        relation=any_later,
    ),
    _ordered(
        "R-truncate-any",
        "truncate → any",
        "If an operation is visible after a crash, every truncate before it is there as a whole.",
        *_then("r-truncate-then", "creat a; append a 8192", "truncate a 4096"),
        *_then("r-truncate-longer-then", "creat a; append a 100", "truncate a 8192"),
        selected=operations("truncate"),
        later=_ANY,
        relation=any_later,
    ),
    _ordered(
        "R-fallocate-any",
        "fallocate → any",
        "If an operation is visible after a crash, every fallocate before it is there as a whole.",
        *_then("r-fallocate-then", "creat a; append a 4096", "fallocate a none 4096 4096"),
        *_then("r-punch-then", "creat a; append a 12288", "fallocate a punch-hole 4096 4096"),
        selected=operations("fallocate"),
        later=_ANY,
        relation=any_later,
    ),
    _ordered(
        "R-mmap-any",
        "store through a mapping → any",
        "If an operation is visible after a crash, every store through a mapping before it is there as a whole.",
        *_then("r-mmap-then", "creat a; append a 4096", "mmapwrite a 0 4096"),
        selected=operations("mmapwrite"),
        later=_ANY,
        relation=any_later,
    ),
    _ordered(
        "R-direct-any",
        "O_DIRECT write → any",
        "If an operation is visible after a crash, every write with O_DIRECT before it is there as a whole.",
        *_then("r-direct-then", "creat a; append a 4096", "dwrite a 0 4096"),
        selected=operations("dwrite"),
        later=_ANY,
        relation=any_later,
    ),
    _ordered(
        "R-xattr-any",
        "setxattr → any",
        "If an operation is visible after a crash, every attribute set before it is there.",
        *_then("r-setxattr-then", "creat a; append a 4096", "setxattr a user.a one"),
        selected=operations(*ATTRIBUTES),
        later=_ANY,
        relation=any_later,
    ),
)
"""What is visible implies what came before."""
