"""The thirteen persistence properties of OSDI'14: what is atomic, and what is in order.

T. S. Pillai et al., "All File Systems Are Not Created Equal: On the Complexity of Crafting Crash-Consistent
Applications", OSDI 2014, Table 1. There `X → Y` says that X is persisted before Y, and `[X, Y] → Z` that X and Y,
which follows it, both are before Z.
"""

from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.properties.family import D_AND_E, PUSHED, Row, endings
from postcrash.properties.kinds import SHARED_EFFECTS, Atomic, Ordered, same_file
from postcrash.properties.p2_safe_appends import SafeAppend, SafeAppends
from postcrash.properties.selection import (
    BUFFERED,
    DIRECTORY,
    Selector,
    both,
    is_append,
    is_overwrite,
    is_within,
    negation,
    operations,
    pairs,
)

SOURCE = "OSDI'14, Table 1"

_FILE = "creat a; append a 4096"
_LONG = "creat a; append a 12288"

# Atomicity of writes


def _appended(length: int) -> tuple[Row, ...]:
    return (
        *endings(f"o-append-{length}-new", "", f"creat a; append a {length}", *PUSHED),
        *endings(f"o-append-{length}-old", _FILE, f"append a {length}", *PUSHED),
    )


def _writes(name: str, what: str, selected: Selector, *rows: Row) -> Atomic:
    return Atomic(
        name,
        f"{what} atomic",
        f"A {what} is there as a whole after a crash or not at all: its bytes, and the size that it gives the file.",
        SOURCE,
        rows,
        (SHARED_EFFECTS, "Writes with O_DIRECT and through a mapping, which have properties of their own."),
        selected=selected,
    )


def _overwrites(unit_bytes: int) -> Selector:
    return operations(*BUFFERED, where=both(is_overwrite, is_within(unit_bytes)))


def _appends(unit_bytes: int) -> Selector:
    return operations(*BUFFERED, where=both(is_append, is_within(unit_bytes)))


_APPENDED_BLOCKS = (
    *_appended(8192),
    ("o-append-8192-old-writeback-second-page-commit", _FILE, "append a 8192; writeback a 8192 4096; commit"),
    ("o-append-8000-from-1000-commit-writeback", "creat a; append a 1000", "append a 8000; commit; writeback a"),
)

_WRITES = (
    _writes(
        "O-sector-overwrite",
        "one-sector overwrite",
        _overwrites(SECTOR_BYTES),
        *endings("o-overwrite-512", _FILE, "write a 1024 512", *PUSHED),
    ),
    _writes(
        "O-sector-append",
        "one-sector append",
        _appends(SECTOR_BYTES),
        *_appended(SECTOR_BYTES),
        *endings("o-append-512-in-block", "creat a; append a 512", "append a 512", *PUSHED),
    ),
    _writes(
        "O-block-overwrite",
        "one-block overwrite",
        _overwrites(BLOCK_BYTES),
        *endings("o-overwrite-4096", _LONG, "write a 4096 4096", *PUSHED),
    ),
    _writes("O-block-append", "one-block append", _appends(BLOCK_BYTES), *_appended(BLOCK_BYTES)),
    _writes(
        "O-blocks",
        "append or overwrite of several blocks",
        operations(*BUFFERED, where=negation(is_within(BLOCK_BYTES))),
        *endings("o-overwrite-8192", _LONG, "write a 4096 8192", *PUSHED),
        *_APPENDED_BLOCKS,
    ),
)


_PREFIX = SafeAppend(
    "O-prefix-append",
    "append of several blocks leaves a prefix",
    "If a file has grown by an append of several blocks, it has grown by a prefix of what was appended.",
    SOURCE,
    _APPENDED_BLOCKS,
    SafeAppends.exclusions,
)

# Atomicity of directory operations

_DIRECTORY = Atomic(
    "O-dir",
    "directory operation atomic",
    "After a crash a directory operation is there whole or not at all; a replaced name is the old or the new file.",
    SOURCE,
    (
        ("o-dir-creat", "", "creat a"),
        ("o-dir-mkdir-symlink", "", "mkdir D; symlink target s"),
        ("o-dir-link", _FILE, "link a b"),
        ("o-dir-unlink-one-of-two", f"{_FILE}; link a b", "unlink b"),
        ("o-dir-unlink-rmdir", "creat a; mkdir D", "unlink a; rmdir D"),
        ("o-dir-rename", "creat a", "rename a b"),
        ("o-dir-rename-fsync-root", "creat a", "rename a b; fsync ."),
        ("o-dir-rename-replacing", f"{_FILE}; creat b; append b 4096", "rename b a"),
        *endings("o-dir-rename-across", f"{D_AND_E}; creat D/a", "rename D/a E/b", "fsync D", "fsync E", "fsync E/b"),
        ("o-dir-rename-directory-across", f"{D_AND_E}; mkdir D/d; creat D/d/a", "rename D/d E/d"),
    ),
    (SHARED_EFFECTS, "Which of two files that look the same a name means."),
    selected=operations(*DIRECTORY),
)

# Order

_ORDER_OF_DATA = (
    SHARED_EFFECTS,
    "Writes with O_DIRECT and through a mapping as what must be there; as what is visible they count.",
)


def _then(name: str, setup: str, operation: str) -> tuple[Row, ...]:
    """`operation` and then each kind of operation, with the later one pushed out first."""
    more = f"{setup}; creat o; creat q; append q 4096; mkdir E"
    return (
        *endings(f"{name}-creat", more, f"{operation}; creat c", "fsync c", "fsync .", "commit"),
        *endings(f"{name}-rename", more, f"{operation}; rename o p", "fsync p", "commit"),
        *endings(
            f"{name}-append", more, f"{operation}; append q 4096", "writeback q", "commit; writeback q", "fsync q"
        ),
        *endings(f"{name}-overwrite", more, f"{operation}; write q 0 4096", "writeback q", "fsync q"),
        (f"{name}-creat-in-dir-fsync-dir", more, f"{operation}; creat E/c; fsync E"),
    )


def _before_any(name: str, what: str, statement: str, selected: Selector, rows: tuple[Row, ...]) -> Ordered:
    return Ordered(name, f"{what} → any", statement, SOURCE, rows, _ORDER_OF_DATA, selected=selected)


_ALL_APPENDS = operations(*BUFFERED, where=is_append)
_TO_ZERO = operations("truncate", where=lambda operation, tree: operation.length == 0)

_ORDER = (
    _before_any(
        "O-overwrite-any",
        "overwrite",
        "If an operation is visible after a crash, every overwrite before it is there as a whole.",
        operations(*BUFFERED, where=is_overwrite),
        _then("o-overwrite-then", _FILE, "write a 0 4096"),
    ),
    _before_any(
        "O-append-rename-any",
        "[append, rename]",
        "If an operation is visible after a crash, an append to a file before it, "
        "and a rename of the file that followed the append, are both there.",
        pairs(_ALL_APPENDS, operations("rename")),
        _then("o-replace-then", _FILE, "creat b; append b 4096; rename b a"),
    ),
    _before_any(
        "O-trunc-append-any",
        "O_TRUNC append",
        "If an operation is visible after a crash, and a file was emptied and appended to before it, "
        "the file holds what was appended.",
        pairs(_TO_ZERO, _ALL_APPENDS),
        _then("o-truncate-then", _FILE, "truncate a 0; append a 4096"),
    ),
    Ordered(
        "O-append-append",
        "append → append, same file",
        "If an append to a file is visible after a crash, every append to the same file before it is there as a whole.",
        SOURCE,
        (
            *endings("o-appends-4096", _FILE, "append a 4096; append a 4096", *PUSHED, "writeback a 8192 4096; commit"),
            *endings("o-appends-100", "creat a; append a 4000", "append a 100; append a 100", *PUSHED),
            ("o-appends-new-commit-between-fsync", "", "creat a; append a 4096; commit; append a 4096; fsync a"),
        ),
        _ORDER_OF_DATA,
        selected=_ALL_APPENDS,
        later=_ALL_APPENDS,
        relation=same_file,
    ),
    _before_any(
        "O-append-any",
        "append",
        "If an operation is visible after a crash, every append before it is there as a whole.",
        _ALL_APPENDS,
        _then("o-append-then", _FILE, "append a 4096"),
    ),
    _before_any(
        "O-dir-any",
        "directory operation",
        "If an operation is visible after a crash, every directory operation before it is there as a whole.",
        operations(*DIRECTORY),
        (
            *_then("o-creat-then", _FILE, "creat b"),
            *_then("o-unlink-then", _FILE, "unlink a"),
            *_then("o-rename-then", f"{_FILE}; mkdir D", "rename a D/b"),
        ),
    ),
)

OSDI14 = (*_WRITES, _PREFIX, _DIRECTORY, *_ORDER)
"""The rows of the table, in its order."""
