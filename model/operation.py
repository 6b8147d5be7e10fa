"""The operations of the workload language: one table for parser, printer, builder, simulator and documentation."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from types import MappingProxyType
from typing import Literal

from postcrash.model.quoting import quote

HANDLE = "@"
"""Begins a handle: `@F` is the descriptor that `open F` made, whatever name F has now."""


class Kind(Enum):
    """What an argument may be. `argument.py` says how each kind is written and limited."""

    PATH = auto()
    FILE = auto()
    FILE_OR_ROOT = auto()
    HANDLE = auto()
    TARGET = auto()
    OFFSET = auto()
    SECTOR_OFFSET = auto()
    BLOCK_OFFSET = auto()
    LENGTH = auto()
    SECTOR_LENGTH = auto()
    SIZE = auto()
    SECONDS = auto()
    MODE = auto()
    NODE = auto()
    XATTR_NAME = auto()
    XATTR_VALUE = auto()
    FLUSHES = auto()
    COMMAND = auto()
    LINE = auto()


PATHS = (Kind.PATH, Kind.FILE, Kind.FILE_OR_ROOT, Kind.HANDLE)
"""The kinds that name a file or directory, or a handle, which has the name of one."""


def on_path(change: Callable[[str], str], text: str) -> str:
    """`change` applied to a path, or to the path in a handle."""
    path = text.removeprefix(HANDLE)
    return text.removesuffix(path) + change(path)


Field = Literal["path", "to", "offset", "to_offset", "length", "seconds", "mode", "name", "value"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name in the documentation, the field of `Operation` that holds it, and its kind."""

    shown: str
    field: Field
    kind: Kind


class Naming(Enum):
    """What an operation does to names."""

    MAKE = auto()
    """`path` is the name of something new."""
    LINK = auto()
    """`to` is one more name of what `path` names."""
    REMOVE = auto()
    """`path` stops being a name."""
    MOVE = auto()
    """What `path` names, with everything below it, has the name `to` instead."""
    SWAP = auto()
    """What `path` and `to` name change places, with everything below them."""


class Route(Enum):
    """The way that a write's bytes take to the disk."""

    CACHE = auto()
    DIRECT = auto()
    MAPPING = auto()


class Persistence(Enum):
    """What survives a crash once an operation has returned."""

    EVERYTHING = auto()
    """Everything in the file system."""
    FILE = auto()
    """The bytes, the size and the attributes of one file, or the entries of one directory."""
    CONTENT = auto()
    """The bytes and the size of one file; of a directory, nothing (`covers_names`)."""
    STORES = auto()
    """Bytes that were stored through a mapping, in a range of one file."""
    OWN = auto()
    """The bytes that the operation writes itself."""

    @property
    def covers_names(self) -> bool:
        """Whether the entries of a directory are among this, where the operation is about the directory.

        fdatasync of a directory promises none of its entries. fsync(2): an entry needs "an explicit fsync() on a file
        descriptor for the directory". fdatasync(2) leaves out metadata unless this "is needed in order to allow a
        subsequent data retrieval to be correctly handled", and POSIX fdatasync() asks for synchronized I/O data
        integrity completion, which is defined for reads and writes of data. What a file system does with it all the
        same, the properties D-fdatasync-dir-* measure.
        """
        return self in (Persistence.EVERYTHING, Persistence.FILE)


@dataclass(frozen=True, slots=True)
class Form:
    """How one operation is written, and its properties. `simulate` defines what it does to a tree.

    naming       what it does to names
    content      which of its files gets other bytes or another size
    attributes   it changes attributes of the file
    data         it writes bytes of its own, in this way, and so carries a tag
    opens        it makes a handle
    persistence  what is promised to survive a crash once it has returned
    fsyncs       the kernel does with it all that fsync of the file does
    untorn       after a crash all of the bytes that it writes are there, or none (RWF_ATOMIC)
    environment  the kernel may do it by itself at any time
    optional     how many of the last arguments may be left out, all together
    """

    word: str
    arguments: tuple[Argument, ...]
    meaning: str
    naming: Naming | None = None
    content: Literal["path", "to"] | None = None
    attributes: bool = False
    data: Route | None = None
    opens: bool = False
    persistence: Persistence | None = None
    fsyncs: bool = False
    untorn: bool = False
    environment: bool = False
    optional: int = 0

    @property
    def changes_tree(self) -> bool:
        """Whether the operation changes what can be seen after a crash."""
        return bool(self.naming or self.content or self.attributes)

    @property
    def usage(self) -> str:
        """For example `write F OFFSET LENGTH` or `writeback F [OFFSET LENGTH]`."""
        words = [self.word, *(argument.shown for argument in self.arguments)]
        if not self.optional:
            return " ".join(words)
        return f"{' '.join(words[: -self.optional])} [{' '.join(words[-self.optional :])}]"


_DIRECTORY = Argument("D", "path", Kind.PATH)
_NAMED = Argument("F", "path", Kind.PATH)
_FILE = Argument("F", "path", Kind.FILE)
_HELD = Argument("@F", "path", Kind.HANDLE)
_FROM = Argument("A", "path", Kind.PATH)
_FROM_FILE = Argument("A", "path", Kind.FILE)
_TO = Argument("B", "to", Kind.PATH)
_RANGE = (Argument("OFFSET", "offset", Kind.OFFSET), Argument("LENGTH", "length", Kind.LENGTH))
_SECTORS = (Argument("OFFSET", "offset", Kind.SECTOR_OFFSET), Argument("LENGTH", "length", Kind.SECTOR_LENGTH))
_SHARED = (
    _FROM_FILE,
    Argument("FROM", "offset", Kind.BLOCK_OFFSET),
    Argument("B", "to", Kind.FILE),
    Argument("TO", "to_offset", Kind.BLOCK_OFFSET),
    _RANGE[1],
)
_SIZE = Argument("SIZE", "length", Kind.SIZE)
_SECONDS = Argument("SECONDS", "seconds", Kind.SECONDS)
_MODE = Argument("MODE", "mode", Kind.MODE)
_NODE = Argument("KIND", "mode", Kind.NODE)
_TARGET = Argument("TARGET", "to", Kind.TARGET)
_NEW = Argument("PATH", "path", Kind.PATH)
_ANY = Argument("PATH", "path", Kind.FILE_OR_ROOT)
_NAME = Argument("NAME", "name", Kind.XATTR_NAME)
_VALUE = Argument("VALUE", "value", Kind.XATTR_VALUE)

_cached_write = partial(Form, content="path", data=Route.CACHE)
_direct_write = partial(Form, content="path", data=Route.DIRECT)
_untorn_write = partial(_direct_write, untorn=True)

_TABLE = (
    Form("mkdir", (_DIRECTORY,), "make a directory", naming=Naming.MAKE),
    Form("rmdir", (_DIRECTORY,), "remove an empty directory", naming=Naming.REMOVE),
    Form("creat", (_NAMED,), "make an empty file; the name must be new", naming=Naming.MAKE),
    Form(
        "mknod",
        (_NEW, _NODE),
        "make a special file: `fifo`, `socket`, `char` (1:3) or `block` (7:0)",
        naming=Naming.MAKE,
    ),
    Form("open", (_NAMED,), "hold a file open; from then on `@F` is its handle", opens=True),
    Form(
        "tmpfile",
        (_NAMED,),
        "hold a new file open that has no name (`O_TMPFILE`), in the folder that F would be in",
        opens=True,
    ),
    Form("close", (_HELD,), "close a handle"),
    _cached_write("write", (_FILE, *_RANGE), "write through the page cache"),
    _cached_write("append", (_FILE, _RANGE[1]), "write at the end of the file"),
    _direct_write("dwrite", (_NAMED, *_SECTORS), "write with O_DIRECT; multiples of 512"),
    _untorn_write("awrite", (_NAMED, *_SECTORS), "write with O_DIRECT and RWF_ATOMIC; OFFSET is a multiple of LENGTH"),
    Form(
        "mmapwrite",
        (_FILE, *_RANGE),
        "store through a shared mapping; a shorter file grows first",
        content="path",
        data=Route.MAPPING,
    ),
    Form("truncate", (_FILE, _SIZE), "set the size", content="path"),
    Form("fallocate", (_FILE, _MODE, *_RANGE), "allocate, zero, punch, take out or put in a range", content="path"),
    Form(
        "reflink",
        _SHARED,
        "B's bytes from TO on become those of A from FROM on, without a copy (`FICLONERANGE`)",
        content="to",
    ),
    Form("dedupe", _SHARED, "the same where the bytes are equal already, so that they are shared (`FIDEDUPERANGE`)"),
    Form("link", (_FROM_FILE, _TO), "give A the second name B", naming=Naming.LINK),
    Form("symlink", (_TARGET, _NEW), "make a symbolic link at PATH; TARGET is not looked at", naming=Naming.MAKE),
    Form("unlink", (_NAMED,), "remove a name of a file", naming=Naming.REMOVE),
    Form("rename", (_FROM, _TO), "rename, replacing B if it is there", naming=Naming.MOVE),
    Form("exchange", (_FROM, _TO), "swap two names (RENAME_EXCHANGE)", naming=Naming.SWAP),
    Form("setxattr", (_FILE, _NAME, _VALUE), "set an extended attribute", attributes=True),
    Form("removexattr", (_FILE, _NAME), "remove an extended attribute", attributes=True),
    Form("fsync", (_ANY,), "fsync a file or directory; `.` is the root", persistence=Persistence.FILE, fsyncs=True),
    Form("fdatasync", (_ANY,), "fdatasync a file or directory", persistence=Persistence.CONTENT),
    Form(
        "msync",
        (_FILE, *_RANGE),
        "msync the file, or pages of it, with MS_SYNC",
        persistence=Persistence.STORES,
        optional=2,
    ),
    Form("sync", (), "sync everything", persistence=Persistence.EVERYTHING),
    Form("syncfs", (), "sync this file system", persistence=Persistence.EVERYTHING),
    _cached_write("write-osync", (_NAMED, *_RANGE), "write with O_SYNC", persistence=Persistence.OWN, fsyncs=True),
    _cached_write("write-odsync", (_NAMED, *_RANGE), "write with O_DSYNC", persistence=Persistence.OWN),
    _direct_write(
        "dwrite-osync",
        (_NAMED, *_SECTORS),
        "write with O_DIRECT and O_SYNC",
        persistence=Persistence.OWN,
        fsyncs=True,
    ),
    _untorn_write(
        "awrite-odsync",
        (_NAMED, *_SECTORS),
        "write with O_DIRECT, RWF_ATOMIC and O_DSYNC",
        persistence=Persistence.OWN,
    ),
    Form("writeback", (_FILE, *_RANGE), "dirty pages go to the disk, no metadata", environment=True, optional=2),
    Form("commit", (), "the journal commits as if its timer had fired", environment=True),
    Form("checkpoint", (), "metadata goes from the log to its own place", environment=True),
    Form("drop-caches", (), "what is clean leaves memory: pages, inodes, names", environment=True),
    Form("sleep", (_SECONDS,), "time passes, so that the kernel's timers fire", environment=True),
)

_FLUSHES = Argument("FLUSHES", "name", Kind.FLUSHES)
_PROGRAM = (Argument("COMMAND", "value", Kind.COMMAND), _SECONDS)
_PROGRAM_TABLE = (
    Form(
        "run",
        _PROGRAM,
        "run a program of the host, in the root directory; it has 60 seconds, or as many as it says",
        optional=1,
    ),
    Form(
        "run-unflushed",
        (_FLUSHES, *_PROGRAM),
        "the same, but its flushes with these numbers do nothing, and it is told that they succeed",
        optional=1,
    ),
    Form("watch", _PROGRAM, "run a program that traces its own children; it alone writes lines", optional=1),
    Form("says", (Argument("LINE", "value", Kind.LINE),), "the program writes a line to its standard output"),
    Form("ends", (), "the program ends"),
)

FORMS: Mapping[str, Form] = MappingProxyType({form.word: form for form in _TABLE})
"""Every operation on a file system by its word, in the order of the documentation."""
PROGRAM_FORMS: Mapping[str, Form] = MappingProxyType({form.word: form for form in _PROGRAM_TABLE})
"""What is recorded of a program, whose own operations nobody names: what it does to files cannot be simulated.

`run`, `run-unflushed` and `watch` are given. Each `says` and `ends` stands for what the program did until then, and
returns when it has done so.
"""
RUN, RUN_UNFLUSHED, WATCH, SAYS, ENDS = PROGRAM_FORMS
PROGRAMS = (RUN, RUN_UNFLUSHED, WATCH)
"""Those that are given."""


def words_where(is_so: Callable[[Form], object]) -> tuple[str, ...]:
    """The words of the operations for whose form `is_so` holds, in the order of the documentation."""
    return tuple(form.word for form in FORMS.values() if is_so(form))


Variant = tuple[str | int | bool, ...]
"""A word, whether it has a handle, and its arguments but those that are names."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a workload.

    Only the fields that its form names are set. Offsets and lengths are in bytes; `length` is also the SIZE of
    truncate; `to` is the second path of link, rename, exchange, reflink and dedupe, and the TARGET of symlink. `mode`
    is the MODE of fallocate and the KIND of mknod. `tag` names the bytes of an operation that writes. `line` is where
    the operation stands in its file (0: nowhere); it is ignored in comparisons.

    Nothing is checked here. `parse_workload` and `WorkloadBuilder`, which make operations, check them.
    """

    word: str
    path: str = ""
    to: str = ""
    offset: int | None = None
    to_offset: int | None = None
    length: int | None = None
    seconds: int | None = None
    mode: str = ""
    name: str = ""
    value: str = ""
    tag: int | None = None
    line: int = field(default=0, compare=False)

    @property
    def form(self) -> Form:
        """The row of the table that describes this operation."""
        return FORMS.get(self.word) or PROGRAM_FORMS[self.word]

    @property
    def changed_file(self) -> str | None:
        """The file, by its path or handle, that gets other bytes or another size. None if there is none."""
        return {"path": self.path, "to": self.to, None: None}[self.form.content]

    @property
    def byte_range(self) -> tuple[int, int]:
        """The bytes from OFFSET on, as many as LENGTH: the first one and the end."""
        assert self.offset is not None
        assert self.length is not None
        return self.offset, self.offset + self.length

    @property
    def is_held(self) -> bool:
        """Whether the operation acts on the handle of an open file."""
        return self.path.startswith(HANDLE)

    @property
    def handles(self) -> tuple[str, ...]:
        """The handles that stand in place of A, B or F."""
        return tuple(name for name in self._names if name.startswith(HANDLE))

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that stand in place of A, B or F. A handle counts as the path that it is named after."""
        return tuple(name.removeprefix(HANDLE) for name in self._names)

    @property
    def _names(self) -> Iterator[str]:
        return (str(value) for argument, value in self.arguments if argument.kind in PATHS)

    @property
    def arguments(self) -> Iterator[tuple[Argument, str | int]]:
        """The arguments that are given, in the order of the language."""
        for argument in self.form.arguments:
            value: str | int | None = getattr(self, argument.field)
            if value is not None:
                yield argument, value

    @property
    def variant(self) -> Variant:
        """The operation without its names: what a file system has or lacks, whatever its files are called."""
        named = (*PATHS, Kind.TARGET)
        return (self.word, self.is_held, *(value for argument, value in self.arguments if argument.kind not in named))

    def to_wire(self) -> dict[str, str | int]:
        """The object that the agent gets; docs/formats.md, "Workload, as sent to the agent"."""
        wire: dict[str, str | int] = {"op": self.word}
        wire.update((argument.field, value) for argument, value in self.arguments)
        if self.tag is not None:
            wire["tag"] = self.tag
        return wire

    def __str__(self) -> str:
        return " ".join([self.word, *(quote(str(value)) for _, value in self.arguments)])
