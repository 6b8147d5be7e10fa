"""Durability: every thing that can be persisted, with every way to persist it.

The durability checker (checkers/durability.py) asks whether a file system keeps the promises of the manual pages. These
rows ask what it provides, promised or not. If a row holds on one file system and not on another, programs may come to
rely on it without knowing.
"""

from typing import Literal, NamedTuple

from postcrash.model.tree import parent
from postcrash.properties.family import Row
from postcrash.properties.kinds import SHARED_EFFECTS, Durable
from postcrash.properties.selection import ATTRIBUTES, UNMAPPED, WRITING, Selector, operations

SOURCE = "ours; the ways to persist are those of open(2), fsync(2), msync(2), sync(2) and mount(8)"

_FILE = "creat a; append a 8192"


class _Thing(NamedTuple):
    """Something to make durable, and the operations that change it: name, set-up, operations, the file."""

    name: str
    what: str
    selected: Selector
    rows: tuple[tuple[str, str, str, str], ...]


_DATA = _Thing(
    "data",
    "what was written to a file, with the size that this gave it",
    operations(*WRITING),
    (
        ("overwrite", _FILE, "write a 4096 4096", "a"),
        ("append", _FILE, "append a 4096", "a"),
        ("new", "mkdir D", "creat D/a; append D/a 5000", "D/a"),
    ),
)
_NAMES = (
    _Thing(
        "name",
        "the name that a file was created under",
        operations("creat"),
        (("empty", "", "creat a", "a"), ("with-data", "mkdir D", "creat D/a; append D/a 100", "D/a")),
    ),
    _Thing(
        "rename",
        "the name that rename gave a file",
        operations("rename"),
        (
            ("new-name", "mkdir D; creat D/b", "rename D/b D/a", "D/a"),
            ("replacing", f"{_FILE}; creat b; append b 100", "rename b a", "a"),
        ),
    ),
    _Thing(
        "link",
        "the name that link gave a file",
        operations("link"),
        (("here", "creat b", "link b a", "a"), ("in-dir", f"mkdir D; {_FILE}", "link a D/a", "D/a")),
    ),
)
_THINGS = (
    _DATA,
    _Thing(
        "size",
        "the size that truncate gave a file",
        operations("truncate"),
        (("shorter", _FILE, "truncate a 100", "a"), ("longer", _FILE, "truncate a 20000", "a")),
    ),
    *_NAMES,
    _Thing(
        "xattr",
        "an attribute of a file",
        operations(*ATTRIBUTES),
        (
            ("set", _FILE, "setxattr a user.a one", "a"),
            ("replaced", f"{_FILE}; setxattr a user.a one", "setxattr a user.a two", "a"),
        ),
    ),
    _Thing(
        "hole",
        "a hole that was punched into a file",
        operations("fallocate", where=lambda operation, tree: operation.mode == "punch-hole"),
        (
            ("block", _FILE, "fallocate a punch-hole 0 4096", "a"),
            ("in-block", _FILE, "fallocate a punch-hole 1000 1000", "a"),
        ),
    ),
)


class _Way(NamedTuple):
    """A way to persist: `barrier` follows the operations, on the file or its directory."""

    name: str
    after: str
    barrier: str
    things: tuple[_Thing, ...] = _THINGS

    @property
    def of(self) -> Literal["", "dir", "file"]:
        """Whether the barrier is of a directory or of a file; empty if it is of everything."""
        return "dir" if "{dir}" in self.barrier else "file" if "{file}" in self.barrier else ""


_WRITTEN = _DATA._replace(selected=operations(*UNMAPPED))
_WAYS = (
    _Way("return", "the operation", "", (_WRITTEN, *_THINGS[1:])),
    _Way("fsync", "fsync of the file", "fsync {file}"),
    _Way("fdatasync", "fdatasync of the file", "fdatasync {file}"),
    _Way("dir", "fsync of the directory", "fsync {dir}", _NAMES),
    _Way("fdatasync-dir", "fdatasync of the directory", "fdatasync {dir}", _NAMES),
    _Way("syncfs", "syncfs", "syncfs"),
    _Way("sync", "sync", "sync"),
)


def _row(way: _Way, thing: _Thing) -> Durable:
    return Durable(
        f"D-{way.name}-{thing.name}",
        f"{thing.name} durable after {way.after}",
        f"Once {way.after} has returned, {thing.what} is there after a crash.",
        SOURCE,
        tuple(_workload(way, thing, *row) for row in thing.rows),
        (SHARED_EFFECTS,),
        selected=thing.selected,
        barriers=tuple(way.barrier.split()[:1]),
        of=way.of,
    )


def _workload(way: _Way, thing: _Thing, name: str, setup: str, changing: str, file: str) -> Row:
    barrier = way.barrier.format(file=file, dir=parent(file))
    return f"d-{way.name}-{thing.name}-{name}", setup, f"{changing}; {barrier}" if barrier else changing


def _of_writes(name: str, after: str, selected: Selector, *rows: Row, barriers: tuple[str, ...] = ()) -> Durable:
    return Durable(
        name,
        f"data durable after {after}",
        f"Once {after} has returned, what it wrote is there after a crash, with the size that this gave the file.",
        SOURCE,
        rows,
        (SHARED_EFFECTS,),
        selected=selected,
        barriers=barriers,
    )


def _of_opened(flag: str) -> Durable:
    word = flag.replace("_", "").lower()
    return _of_writes(
        f"D-{word}-data",
        f"a write with {flag}",
        operations(f"write-{word}"),
        (f"d-{word}-data-overwrite", _FILE, f"write-{word} a 4096 4096"),
        (f"d-{word}-data-append", _FILE, f"write-{word} a 8192 4096"),
        (f"d-{word}-data-new", "mkdir D", f"creat D/a; write-{word} D/a 0 100"),
    )


_WRITES = (
    _of_writes(
        "D-msync-data",
        "msync with MS_SYNC",
        operations("mmapwrite"),
        ("d-msync-data-overwrite", _FILE, "mmapwrite a 4096 4096; msync a"),
        ("d-msync-data-longer", "creat a; append a 100", "mmapwrite a 4096 100; msync a"),
        barriers=("msync",),
    ),
    *(_of_opened(flag) for flag in ("O_SYNC", "O_DSYNC")),
)

DURABILITY = (*(_row(way, thing) for way in _WAYS for thing in way.things), *_WRITES)
"""The rows, way by way and thing by thing."""
