"""Atomicity beyond the tables of the papers: each operation leaves its old state or its new one behind."""

from postcrash.model import words_where
from postcrash.model.units import BLOCK_BYTES
from postcrash.properties.family import D_AND_E, PUSHED, Row, endings
from postcrash.properties.kinds import Atomic
from postcrash.properties.selection import ATTRIBUTES, Selector, both, is_overwrite, is_within, operations

SOURCE = "ours"

_FILE = "creat a; append a 12288"
_TWO = "creat a; append a 4096; creat b; append b 4096"
_LONG = "creat a; append a 16384"
_SYNCED = ("fsync .", "commit")


def _atomic(name: str, title: str, statement: str, *rows: Row, selected: Selector) -> Atomic:
    return Atomic(name, title, statement, SOURCE, rows, selected=selected)


def _fallocate(*modes: str) -> Selector:
    return operations("fallocate", where=lambda operation, tree: operation.mode in modes)


ATOMICITY = (
    _atomic(
        "A-rename",
        "rename atomic",
        "After a crash a renamed file has its old name or its new one and not both or none, "
        "and a name that it replaces is the old file or the new one.",
        *endings("a-rename", "creat a", "rename a b", *_SYNCED),
        *endings("a-rename-replacing", _TWO, "rename b a", *_SYNCED),
        *endings("a-rename-across", f"{D_AND_E}; creat D/a", "rename D/a E/b", "fsync D", "fsync E", "fsync E/b"),
        *endings(
            "a-rename-replacing-across",
            f"{D_AND_E}; creat D/a; append D/a 4096; creat E/b; append E/b 4096",
            "rename D/a E/b",
            "fsync D",
            "fsync E",
        ),
        ("a-rename-directory-across", f"{D_AND_E}; mkdir D/d; creat D/d/a", "rename D/d E/d; fsync E"),
        selected=operations("rename"),
    ),
    _atomic(
        "A-exchange",
        "exchange atomic",
        "After a crash two exchanged names mean what they did before, or both what they do after.",
        *endings("a-exchange", _TWO, "exchange a b", *_SYNCED, "fsync a"),
        *endings(
            "a-exchange-across",
            f"{D_AND_E}; creat D/a; append D/a 4096; creat E/b; append E/b 4096",
            "exchange D/a E/b",
            "fsync D",
            "fsync E",
        ),
        ("a-exchange-directories", f"{D_AND_E}; creat D/a; creat E/b", "exchange D E"),
        selected=operations("exchange"),
    ),
    _atomic(
        "A-link",
        "link atomic",
        "After a crash a new name of a file is there and counted, or neither.",
        *endings("a-link", "creat a; append a 4096", "link a b", *_SYNCED, "fsync a"),
        ("a-link-in-dir-fsync-dir", f"creat a; {D_AND_E}", "link a D/b; fsync D"),
        selected=operations("link"),
    ),
    _atomic(
        "A-unlink",
        "unlink atomic",
        "After a crash a name that was removed is there and counted, or neither.",
        *endings("a-unlink-one-of-two", "creat a; append a 4096; link a b", "unlink b", *_SYNCED, "fsync a"),
        ("a-unlink-in-dir-fsync-dir", f"creat a; {D_AND_E}; link a D/b", "unlink D/b; fsync D"),
        ("a-unlink-last", "creat a; append a 4096", "unlink a; commit"),
        selected=operations("unlink"),
    ),
    _atomic(
        "A-symlink",
        "symlink atomic",
        "After a crash a new symbolic link has its target, or is not there; it is never empty or garbled.",
        *endings("a-symlink-short", "", "symlink target s", *_SYNCED),
        *endings("a-symlink-long", "", f"symlink {'target/' * 20}end s", *_SYNCED),
        ("a-symlink-in-dir-fsync-dir", "mkdir D", f"symlink {'target/' * 20}end D/s; fsync D"),
        selected=operations("symlink"),
    ),
    _atomic(
        "A-truncate",
        "truncate atomic",
        "After a crash a truncated file has its old size and bytes or its new ones; what it grew by is zeros.",
        *endings("a-truncate-shorter", _FILE, "truncate a 4096", *PUSHED),
        *endings("a-truncate-in-block", _FILE, "truncate a 5000", *PUSHED),
        *endings("a-truncate-longer", "creat a; append a 1000", "truncate a 8192", *PUSHED),
        selected=operations("truncate"),
    ),
    _atomic(
        "A-fallocate",
        "fallocate atomic",
        "After a crash a file that was preallocated has its old size or its new one, with zeros in between.",
        *endings("a-fallocate", "creat a; append a 1000", "fallocate a none 0 12288", *PUSHED),
        *endings("a-fallocate-new", "", "creat a; fallocate a none 0 8192", "fsync a"),
        selected=_fallocate("none", "keep-size"),
    ),
    _atomic(
        "A-punch",
        "punch atomic",
        "After a crash a punched range is as before, or all zeros.",
        *endings("a-punch", _FILE, "fallocate a punch-hole 4096 4096", *PUSHED),
        *endings("a-punch-in-blocks", _FILE, "fallocate a punch-hole 1000 8000", *PUSHED),
        selected=_fallocate("punch-hole"),
    ),
    _atomic(
        "A-zero-range",
        "zero-range atomic",
        "After a crash a zeroed range is as before, or all zeros, with the size that belongs to it.",
        *endings("a-zero-range", _FILE, "fallocate a zero-range 4096 4096", *PUSHED),
        *endings("a-zero-range-in-blocks", _FILE, "fallocate a zero-range 1000 8000", *PUSHED),
        *endings("a-zero-range-longer", _FILE, "fallocate a zero-range 8192 8192", *PUSHED),
        selected=_fallocate("zero-range", "zero-range-keep-size"),
    ),
    _atomic(
        "A-mmap",
        "store through a mapping atomic",
        "What was stored in one page of a file through a mapping is there as a whole after a crash or not at all.",
        *endings("a-mmap-page", _FILE, "mmapwrite a 4096 4096", *PUSHED, "msync a"),
        *endings("a-mmap-in-page", _FILE, "mmapwrite a 5000 1000", *PUSHED, "msync a"),
        selected=operations("mmapwrite", where=both(is_overwrite, is_within(BLOCK_BYTES))),
    ),
    _atomic(
        "A-direct",
        "O_DIRECT write atomic",
        "A write of one block with O_DIRECT is there as a whole after a crash or not at all.",
        *endings("a-direct-block", _FILE, "dwrite a 4096 4096", "fsync a", "commit"),
        *endings("a-direct-longer", "creat a; append a 4096", "dwrite a 4096 4096", "fsync a", "commit"),
        selected=operations("dwrite", where=is_within(BLOCK_BYTES)),
    ),
    _atomic(
        "A-untorn",
        "RWF_ATOMIC write atomic",
        "What a write with RWF_ATOMIC put over a range of a file is there as a whole after a crash or not at all.",
        *endings("a-untorn", _LONG, "awrite a 8192 8192", "fsync a", "commit"),
        ("a-untorn-block-fsync-a", _LONG, "awrite a 8192 4096; fsync a"),
        ("a-untorn-odsync", _LONG, "awrite-odsync a 8192 8192"),
        ("a-untorn-hole-fsync-a", "creat a; truncate a 16384", "awrite a 8192 8192; fsync a"),
        ("a-untorn-part-hole-fsync-a", "creat a; write a 8192 4096; truncate a 16384", "awrite a 8192 8192; fsync a"),
        ("a-untorn-unwritten-fsync-a", "creat a; fallocate a none 0 16384", "awrite a 8192 8192; fsync a"),
        ("a-untorn-shared-fsync-a", f"{_LONG}; creat b; reflink a 0 b 0 16384", "awrite a 8192 8192; fsync a"),
        selected=operations(*words_where(lambda form: form.untorn), where=is_overwrite),
    ),
    _atomic(
        "A-xattr",
        "setxattr atomic",
        "After a crash an attribute of a file has its old value or its new one.",
        *endings("a-setxattr-new", "creat a", "setxattr a user.a one", "fsync a", "commit"),
        *endings("a-setxattr-replacing", "creat a; setxattr a user.a one", "setxattr a user.a two", "fsync a"),
        *endings("a-removexattr", "creat a; setxattr a user.a one", "removexattr a user.a", "fsync a"),
        selected=operations(*ATTRIBUTES),
    ),
)
"""There is one property for each operation."""
