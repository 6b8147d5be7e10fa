"""What SQLite can be told about a file system: its five options of I/O, with atomic writes in three sizes.

SQLITE_IOCAP_* of https://sqlite.org/c3ref/c_iocap_atomic.html and https://sqlite.org/atomiccommit.html; synchronous
directory operations are as in HotDep'13, section 4.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from postcrash.model import History, Observation, all_from, source_at
from postcrash.model.judge import UNTESTED, Opinion, holds, violated
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.properties.family import PUSHED, Row, endings
from postcrash.properties.kinds import SHARED_EFFECTS, Atomic, Durable, Ordered, PropertyBase
from postcrash.properties.p2_safe_appends import SafeAppend, SafeAppends
from postcrash.properties.selection import BUFFERED, DIRECTORY, Test, operations, span
from postcrash.properties.wording import shown_bytes

SOURCE = "SQLite, SQLITE_IOCAP_{}"

_DATABASE = "creat a; append a 12288"


@dataclass(frozen=True, slots=True)
class PowersafeOverwrite(PropertyBase):
    """A write changes no byte outside its range."""

    def examine(self, history: History, observation: Observation) -> Opinion:
        """Relevant if a write to a file that is there had started."""
        tree = observation.tree
        relevant = False
        for path, start, end, source in _bystanders(history):
            entry = tree.get(path)
            if entry is None or not _is_written(history, path):
                continue
            relevant = True
            if not all_from(entry, start, end, {source}):
                found = shown_bytes(history.workload, path, entry, start, end)
                return violated(f"no operation wrote to bytes {start} to {end}, but {found}")
        return holds("what was not written to is as it was") if relevant else UNTESTED


def _is_written(history: History, path: str) -> bool:
    operations_started = history.workload.operations[len(history.workload.setup) : history.started]
    return any(each.tag is not None and each.path == path for each in operations_started)


def _bystanders(history: History) -> Iterator[tuple[str, int, int, str]]:
    """Stretches of files that have the same bytes in every tree, under a name that only this file ever has."""
    trees = history.trees[len(history.workload.setup) : history.started + 1]
    for path, first in trees[0].items():
        entries = [tree.get(path) for tree in trees]
        states = [entry for entry in entries if entry is not None and entry.inode == first.inode]
        if len(states) < len(trees) or first.type != "file":
            continue
        edges = sorted({edge for entry in states for run in entry.segments for edge in run[:2]})
        for start, end in pairwise(edges):
            sources = {source_at(entry, start) for entry in states}
            source = sources.pop()
            if source is not None and not sources:
                yield path, start, end, source


def _aligned(unit_bytes: int) -> Test:
    """Exactly one aligned unit."""
    return lambda operation, tree: operation.length == unit_bytes and span(operation, tree)[0] % unit_bytes == 0


def _atomic(name: str, what: str, option: str, rows: tuple[Row, ...], where: Test) -> Atomic:
    return Atomic(
        name,
        f"{what} atomic",
        f"A write of {what} is there as a whole after a crash or not at all, be it an overwrite or an append.",
        SOURCE.format(option),
        rows,
        selected=operations(*BUFFERED, where=where),
    )


_ATOMIC_512 = (
    *endings("s-atomic-512-overwrite", _DATABASE, "write a 1024 512", *PUSHED),
    *endings("s-atomic-512-append", "creat a; append a 512", "write a 512 512", *PUSHED),
)
_ATOMIC_4096 = (
    *endings("s-atomic-4096-overwrite", _DATABASE, "write a 4096 4096", *PUSHED),
    *endings("s-atomic-4096-append", _DATABASE, "write a 12288 4096", *PUSHED),
)
_ATOMIC_ANY = (
    *endings("s-atomic-overwrite-all", _DATABASE, "write a 0 12288", *PUSHED),
    *endings("s-atomic-overwrite-across", _DATABASE, "write a 4000 200", *PUSHED),
    *endings("s-atomic-append-8192", _DATABASE, "write a 12288 8192", *PUSHED),
)

SQLITE = (
    SafeAppend(
        "S-safe-append",
        "safe append",
        "When data is appended to a file, the data is there before the size of the file has grown.",
        SOURCE.format("SAFE_APPEND"),
        (
            *endings("s-append-8192", _DATABASE, "append a 8192", *PUSHED, "writeback a 16384 4096; commit"),
            *endings("s-append-100", "creat a; append a 1000", "append a 100", *PUSHED, "commit"),
        ),
        SafeAppends.exclusions,
    ),
    PowersafeOverwrite(
        "S-powersafe-overwrite",
        "power-safe overwrite",
        "When a range of bytes in a file is written, no byte outside of the range is changed by a crash.",
        SOURCE.format("POWERSAFE_OVERWRITE"),
        (
            *endings("s-overwrite-100", _DATABASE, "write a 5000 100", *PUSHED),
            *endings("s-overwrite-4096", _DATABASE, "write a 4096 4096", *PUSHED),
            *endings("s-append-to-1000", "creat a; append a 1000", "append a 100", *PUSHED),
        ),
        ("Files that a recorded operation renames, links over or removes, and bytes past the old end.",),
    ),
    _atomic("S-atomic-512", "512 aligned bytes", "ATOMIC512", _ATOMIC_512, _aligned(SECTOR_BYTES)),
    _atomic("S-atomic-4k", "4096 aligned bytes", "ATOMIC4K", _ATOMIC_4096, _aligned(BLOCK_BYTES)),
    _atomic(
        "S-atomic",
        "any size",
        "ATOMIC",
        _ATOMIC_ANY,
        lambda operation, tree: True,
    ),
    Ordered(
        "S-sequential",
        "sequential writes",
        "If a write is visible after a crash, every write before it, to whatever file, is there as a whole.",
        SOURCE.format("SEQUENTIAL"),
        (
            *endings(
                "s-overwrites", _DATABASE, "write a 0 4096; write a 8192 4096", "writeback a 8192 4096", "fsync a"
            ),
            *endings("s-journal", f"{_DATABASE}; creat j", "append j 4096; write a 0 4096", "writeback a", "fsync a"),
            *endings("s-appends", f"{_DATABASE}; creat j", "append j 4096; append j 100", "writeback j 4096 4096"),
        ),
        selected=operations(*BUFFERED),
        later=operations(*BUFFERED),
    ),
    Durable(
        "S-sync-dir",
        "synchronous directory operations",
        "A directory operation that has returned is there after a crash.",
        "HotDep'13, section 4.1; SQLite, SQLITE_DISABLE_DIRSYNC",
        (
            ("s-creat", "", "creat a"),
            ("s-creat-fsync", "", "creat a; append a 4096; fsync a"),
            ("s-unlink", _DATABASE, "unlink a"),
            ("s-unlink-fsync-other", f"{_DATABASE}; creat j; append j 4096", "unlink j; write a 0 4096; fsync a"),
            ("s-rename", "creat a", "rename a b"),
            ("s-mkdir-link-rmdir", "creat a; mkdir E", "mkdir D; link a D/b; rmdir E"),
        ),
        (SHARED_EFFECTS, "The data of new files."),
        selected=operations(*DIRECTORY),
    ),
)
"""All options that SQLite asks about, in the order of HotDep'13's table 2."""
