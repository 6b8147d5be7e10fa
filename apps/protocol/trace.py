"""What a program did to its folder, step by step, as changes that can each be durable by themselves.

`postcrash-calls` writes one line of JSON for each step. A change sets one slot: a name, the size of a file, or a block
of a file. Slots are what a file system writes as a whole, so a later change of a slot contains the earlier ones.
"""

import base64
import io
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeAlias

import pydantic
from pydantic import ConfigDict, Field

from postcrash.model import FORMS
from postcrash.model.argument import UNLISTED
from postcrash.model.tree import ROOT_PATH
from postcrash.model.units import BLOCK_BYTES
from postcrash.recorders.system_calls import WRITES

STORE = "store"
"""The name of steps that are no calls: what was stored through a mapping before the next call."""
IN_ORDER = (*WRITES, "core dump")
"""Steps that write blocks from the first to the last: those calls, and the kernel when a process crashes."""
LINES_MAX = 200_000
FILE_BYTES_MAX = 128 << 20
CHANGES_MAX = 4000
NAMES_MAX = 50
"""How many names are listed of what a step concerns."""
_PATH_MAX = 1023
_PACKED = re.compile(r"postcrash-trace [0-9]{1,5}")
_PACKED_NAME = "packed trace"
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_STRICT = ConfigDict(extra="forbid")


class TraceError(ValueError):
    """The file is not what `postcrash-calls` writes, or too large. The text is `FILE:LINE: …`."""


@dataclass(frozen=True, slots=True, order=True)
class NameSlot:
    """A name in a directory, by the directory's inode."""

    folder: int
    name: str


@dataclass(frozen=True, slots=True, order=True)
class SizeSlot:
    """The size of a file, by its inode."""

    inode: int


@dataclass(frozen=True, slots=True, order=True)
class BlockSlot:
    """A block of a file."""

    inode: int
    block: int


@dataclass(frozen=True, slots=True, order=True)
class CutSlot:
    """That a file was cut off, by its inode and the place of the change: each cut has a slot of its own."""

    inode: int
    place: int


Slot: TypeAlias = NameSlot | SizeSlot | BlockSlot | CutSlot
"""Slots of different kinds are never equal, whatever their numbers."""


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class FlushedRange:
    """A file or directory that a step made durable: all of it if `end` is None.

    start, end  only what was stored through mappings into these bytes; the file reaches to their end, or as far as it
                did when the step returned
    own         only what the step itself has written to these bytes
    """

    inode: int
    start: _Count
    end: _Count | None
    own: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One slot gets a value.

    index  place in `Protocol.changes`, which are in the order in which they were made
    step   number of the step that made it
    value  of a name: the inode (0: the name is gone); of a size, also that of a cut: bytes; of a block: its content, no
           zeros at its end
    before  the value before it, of a name and a size
    """

    index: int
    step: int
    slot: Slot
    value: int | bytes
    before: int = 0


@dataclass(frozen=True, slots=True)
class Inode:
    """What an inode is, apart from what its slots hold."""

    type: str
    mode: int
    target: str


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class Frame:
    """One call on the stack of a thread. If the line is 0, the file is the program or library in which it is."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Step:
    """A system call that changed something, made something durable, or wrote output.

    call     its name, or `STORE`
    about    what it concerned, for people: names, and sizes or blocks
    first, end  its changes are `Protocol.changes[first:end]`
    known    number of changes that had been made when it began; less than `first` if other threads ran meanwhile
    durable  what was durable when it had returned; `everything`: all
    outputs  lines on the standard output
    stack    where it is made, innermost first, as far as that could be found out
    """

    number: int
    call: str
    about: str
    first: int
    end: int
    durable: tuple[FlushedRange, ...]
    everything: bool
    outputs: tuple[str, ...]
    known: int
    stack: tuple[Frame, ...] = ()

    @property
    def covers_names(self) -> bool:
        """Whether the entries of a directory that it makes durable are part of this, as documents have it."""
        persistence = FORMS[self.call].persistence if self.call in FORMS else None
        return persistence is None or persistence.covers_names

    @property
    def places(self) -> tuple[str, ...]:
        """Where in the source it is made, and from where that is called: at most two of `folder/file:line`."""
        known = (frame for frame in self.stack if frame.line)
        return tuple(f"{'/'.join(frame.file.split('/')[-2:])}:{frame.line}" for frame in islice(known, 2))


@dataclass(frozen=True, eq=False)
class Protocol:
    """Everything that a program did.

    root   inode of the folder
    base   what each slot held when it began; a slot that is missing held nothing
    attributed  files and directories with extended attributes, which no slot holds
    """

    root: int
    base: dict[Slot, int | bytes]
    inodes: dict[int, Inode]
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    attributed: frozenset[int] = frozenset()


class _Name(pydantic.BaseModel, extra="forbid"):
    kind: Literal["name"]
    folder: int
    name: str
    inode: int


class _Inode(pydantic.BaseModel, extra="forbid"):
    kind: Literal["inode"]
    inode: int
    type: str
    mode: int
    target: str


class _Size(pydantic.BaseModel, extra="forbid"):
    kind: Literal["size"]
    inode: int
    size: _Count


class _Block(pydantic.BaseModel, extra="forbid"):
    kind: Literal["block"]
    inode: int
    block: _Count
    bytes: str = Field(pattern="^([0-9a-f]{2}){0,4096}$")


class _Attributes(pydantic.BaseModel, extra="forbid"):
    kind: Literal["attributes"]
    inode: int


class _Line(pydantic.BaseModel, extra="forbid"):
    call: str
    thread: int
    stack: tuple[Frame, ...]
    during: _Count = 0
    effects: list[_Name | _Inode | _Size | _Block | _Attributes]
    durable: tuple[FlushedRange, ...]
    everything: bool
    outputs: list[str]


def read_trace(file: Path) -> Protocol:
    """What `postcrash-calls` wrote to `file`. Raises `TraceError` and `OSError`."""
    with file.open("rb") as stream:
        return _read(stream, str(file))


def unpacked(lines: Sequence[str]) -> tuple[tuple[str, ...], Protocol]:
    """What a program said, and what it did, from the lines that `postcrash-calls FOLDER -` said.

    Names of the root folder that trees leave out (`UNLISTED`) are left out if they were there when the program began:
    then we or mkfs have put them there. Raises `TraceError`, also if the program changes one of them.
    """
    marks = [number for number, line in enumerate(lines) if _PACKED.fullmatch(line)]
    if not marks:
        raise TraceError(f"{_PACKED_NAME}:1: expected the mark of a packed trace, found none")
    outputs, packed = lines[: marks[-1]], lines[marks[-1] + 1 :]
    count = int(lines[marks[-1]].split()[1])
    if count != len(packed):
        raise TraceError(f"{_PACKED_NAME}:1: expected {count} lines, found {len(packed)}")
    unpacker = zlib.decompressobj()
    try:
        trace = unpacker.decompress(base64.b64decode("".join(packed), validate=True), FILE_BYTES_MAX)
    except (ValueError, zlib.error) as error:
        raise TraceError(f"{_PACKED_NAME}:2: expected a packed trace, found {packed[0][:80]!r}") from error
    if not unpacker.eof:
        raise TraceError(f"{_PACKED_NAME}:2: it is cut off, or has more than {FILE_BYTES_MAX} bytes")
    protocol = _read(io.BytesIO(trace), _PACKED_NAME)
    unlisted = {slot for slot in (NameSlot(protocol.root, name) for name in UNLISTED) if slot in protocol.base}
    if changed := next((each.slot.name for each in protocol.changes if each.slot in unlisted), None):
        raise TraceError(f"the program changes {changed}, which is not listed")
    base = {slot: value for slot, value in protocol.base.items() if slot not in unlisted}
    return tuple(outputs), replace(protocol, base=base)


def _read(stream: BinaryIO, name: str) -> Protocol:
    reader = _Reader()
    left = FILE_BYTES_MAX
    for number in range(1, LINES_MAX + 2):
        line = stream.readline(left + 1)
        if not line:
            break
        left -= len(line)
        if left < 0 or number > LINES_MAX:
            raise TraceError(f"{name}:{number}: more than {FILE_BYTES_MAX} bytes or {LINES_MAX} lines")
        try:
            reader.take(_Line.model_validate(json.loads(line)))
        except _TooManyChanges as error:
            raise TraceError(f"{name}:{number}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise TraceError(
                f"{name}:{number}: expected a step, found {line[:80]!r} ({type(error).__name__})"
            ) from None
    if reader.root is None:
        raise TraceError(f"{name}:1: expected a step, found nothing")
    steps, changes, attributed = tuple(reader.steps), tuple(reader.changes), frozenset(reader.attributed)
    return Protocol(reader.root, reader.base, reader.inodes, steps, changes, attributed)


class _TooManyChanges(Exception):
    pass


@dataclass
class _Reader:
    """The steps so far, and what each slot holds now."""

    root: int | None = None
    base: dict[Slot, int | bytes] = field(default_factory=dict)
    inodes: dict[int, Inode] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    attributed: set[int] = field(default_factory=set)
    _now: dict[Slot, Any] = field(default_factory=dict)
    _paths: dict[int, str] = field(default_factory=dict)

    def take(self, line: _Line) -> None:
        """Add a step. The first one has what the folder held before. Raises ValueError and _TooManyChanges."""
        for effect in line.effects:
            if isinstance(effect, _Inode):
                self.inodes[effect.inode] = Inode(effect.type, effect.mode, effect.target)
            elif isinstance(effect, _Attributes):
                self.attributed.add(effect.inode)
        values = list(self._values(line))
        if self.root is None:
            if not line.durable:
                raise ValueError("the first step names the folder")
            self.root = line.durable[0].inode
            self._paths[self.root] = ROOT_PATH
            self.base = dict(values)
            self._now = dict(values)
            self._name(values)
            return
        number, first = len(self.steps), len(self.changes)
        if line.during > number:
            raise ValueError("more steps were made meanwhile than there are")
        known = self.steps[number - line.during].first if line.during else first
        self._change(number, values, is_write=line.call in IN_ORDER)
        names = self._named(values)
        self._name(values)
        concerned = dict.fromkeys([*names, *self._named(values), *self._flushed(line)])
        about = ", ".join(islice(concerned, NAMES_MAX))
        self.steps.append(
            Step(
                number,
                line.call,
                about=about,
                first=first,
                end=len(self.changes),
                durable=line.durable,
                everything=line.everything,
                outputs=tuple(line.outputs),
                known=known,
                stack=line.stack,
            )
        )

    def _values(self, line: _Line) -> Iterator[tuple[Slot, int | bytes]]:
        for effect in line.effects:
            if isinstance(effect, _Name):
                yield NameSlot(effect.folder, effect.name), effect.inode
            elif isinstance(effect, _Size):
                yield SizeSlot(effect.inode), effect.size
            elif isinstance(effect, _Block):
                yield BlockSlot(effect.inode, effect.block), bytes.fromhex(effect.bytes)

    def _change(self, step: int, values: list[tuple[Slot, int | bytes]], *, is_write: bool) -> None:
        """A size that grows with data grows block by block, because a file system may write an append in parts.

        Blocks of zeros are data, too, but no slot changes with them.
        """
        written = {slot.inode for slot, _ in values if isinstance(slot, BlockSlot)}
        for slot, value in values:
            before = self._now.get(slot, b"" if isinstance(slot, BlockSlot) else 0)
            if isinstance(slot, SizeSlot) and (is_write or slot.inode in written):
                edges = range((before // BLOCK_BYTES + 1) * BLOCK_BYTES, int(value), BLOCK_BYTES)
                for edge in edges:
                    self._add(step, slot, edge, before)
            self._add(step, slot, value, before if isinstance(before, int) else 0)
            if isinstance(slot, SizeSlot) and value < before:
                self._add(step, CutSlot(slot.inode, len(self.changes)), value, before)
            self._now[slot] = value

    def _add(self, step: int, slot: Slot, value: int | bytes, before: int) -> None:
        if len(self.changes) == CHANGES_MAX:
            raise _TooManyChanges(f"more than {CHANGES_MAX} names, sizes and blocks are changed")
        self.changes.append(Change(len(self.changes), step, slot, value, before))

    def _name(self, values: list[tuple[Slot, int | bytes]]) -> None:
        """Note where inodes can be found, for people."""
        for slot, value in values:
            if isinstance(slot, NameSlot) and isinstance(value, int) and value:
                folder = self._paths.get(slot.folder, "?")
                self._paths[value] = (slot.name if folder == ROOT_PATH else f"{folder}/{slot.name}")[-_PATH_MAX:]

    def _named(self, values: list[tuple[Slot, int | bytes]]) -> list[str]:
        """The paths that a step concerns. Before and after names have changed, it gives the paths of a renamed file."""
        named = [value for slot, value in values if isinstance(slot, NameSlot) and isinstance(value, int) and value]
        inodes = [*named, *(slot.inode for slot, _ in values if not isinstance(slot, NameSlot))]
        gone = [slot.name for slot, value in values if isinstance(slot, NameSlot) and not value]
        return [*gone, *(self._paths[inode] for inode in inodes if inode in self._paths)]

    def _flushed(self, line: _Line) -> list[str]:
        return [self._paths.get(each.inode, "?") for each in line.durable]
