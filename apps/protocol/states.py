"""One folder that a crash can leave: which changes are durable, and what the application then finds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from postcrash.apps.folder import Folder
from postcrash.apps.protocol.trace import BlockSlot, Change, CutSlot, NameSlot, Protocol, SizeSlot, Slot
from postcrash.model import Entry, Segment, Tree
from postcrash.model.segments import BYTES
from postcrash.model.tree import ROOT_PATH, EntryType
from postcrash.model.units import BLOCK_BYTES


class Slots:
    """The changes of each slot, in their order. A file that is cut off changes the blocks behind its new end, too."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._changes: dict[Slot, list[Change]] = {}
        blocks = {change.slot for change in protocol.changes if isinstance(change.slot, BlockSlot)}
        blocks |= {slot for slot in protocol.base if isinstance(slot, BlockSlot)}
        for change in protocol.changes:
            self._changes.setdefault(change.slot, []).append(change)
            if isinstance(change.slot, CutSlot) and isinstance(change.value, int):
                for slot in blocks:
                    if slot.inode == change.slot.inode and slot.block * BLOCK_BYTES >= change.value:
                        self._changes.setdefault(slot, []).append(change)
        self.blocks: dict[int, list[BlockSlot]] = {}
        for slot in sorted(blocks):
            self.blocks.setdefault(slot.inode, []).append(slot)
        self.names: dict[int, list[NameSlot]] = {}
        named = {slot for slot in (*protocol.base, *self._changes) if isinstance(slot, NameSlot)}
        for name in sorted(named):
            self.names.setdefault(name.folder, []).append(name)

    def of(self, slot: Slot) -> list[Change]:
        """The changes of a slot."""
        return self._changes.get(slot, [])

    def value(self, slot: Slot, winner: Change | None) -> int | bytes:
        """What a slot holds of which `winner` is the last durable change."""
        if winner is None:
            return self.protocol.base.get(slot, b"" if isinstance(slot, BlockSlot) else 0)
        return b"" if winner.slot != slot else winner.value


@dataclass(frozen=True)
class State:
    """What a crash leaves before change `end` is made, if the changes with the indices in `durable` are durable."""

    slots: Slots
    end: int
    durable: frozenset[int]

    def winner(self, slot: Slot) -> Change | None:
        """The last durable change of a slot."""
        changes = (each for each in reversed(self.slots.of(slot)) if each.index < self.end)
        return next((change for change in changes if change.index in self.durable), None)

    @cached_property
    def _found(self) -> tuple[list[tuple[str, int]], list[Slot]]:
        """Names with their inodes, directories first; and the slots that were looked at."""
        found: list[tuple[str, int]] = []
        looked: dict[Slot, None] = {}
        waiting = [("", self.slots.protocol.root, frozenset[int]())]
        while waiting:
            path, folder, above = waiting.pop(0)
            for slot in self.slots.names.get(folder, []):
                looked[slot] = None
                inode = self.slots.value(slot, self.winner(slot))
                if not isinstance(inode, int) or not inode or inode in above:
                    continue
                name = f"{path}{slot.name}"
                found.append((name, inode))
                if self.slots.protocol.inodes[inode].type == "dir":
                    waiting.append((f"{name}/", inode, above | {inode}))
        for _, inode in found:
            looked.update(dict.fromkeys(self._file_slots(inode)))
        return found, list(looked)

    @cached_property
    def lost(self) -> tuple[Change, ...]:
        """The changes that are not durable, and of whose slots no later change is."""
        changes = self.slots.protocol.changes[: self.end]
        return tuple(change for change in changes if not self._stands(change))

    def _stands(self, change: Change) -> bool:
        winner = self.winner(change.slot)
        return winner is not None and winner.index >= change.index

    @property
    def seen(self) -> list[Slot]:
        """The slots that the application can see something of."""
        return self._found[1]

    def _file_slots(self, inode: int) -> Iterator[Slot]:
        if self.slots.protocol.inodes[inode].type == "file":
            size = SizeSlot(inode)
            yield size
            length = self.slots.value(size, self.winner(size))
            assert isinstance(length, int)
            yield from (slot for slot in self.slots.blocks.get(inode, []) if slot.block * BLOCK_BYTES < length)

    @cached_property
    def folder(self) -> Folder:
        """The folder that the application finds."""
        return Folder.of(self.tree)

    @property
    def tree(self) -> Tree:
        """The folder as a tree, with contents byte by byte."""
        return Tree([Entry(ROOT_PATH, "dir"), *(self._entry(path, inode) for path, inode in self._found[0])])

    def _entry(self, path: str, inode: int) -> Entry:
        what = self.slots.protocol.inodes[inode]
        content = self.content(inode) if what.type == "file" else b""
        segments = (Segment(0, len(content), BYTES + content.hex()),) if content else ()
        kind = cast(EntryType, what.type)
        return Entry(
            path, kind, what.mode, nlink=None, inode=inode, size=len(content), segments=segments, target=what.target
        )

    def content(self, inode: int) -> bytes:
        """The bytes of a file."""
        size = self.slots.value(SizeSlot(inode), self.winner(SizeSlot(inode)))
        assert isinstance(size, int)
        content = bytearray(size)
        for slot in self.slots.blocks.get(inode, []):
            start = slot.block * BLOCK_BYTES
            block = self.slots.value(slot, self.winner(slot))
            if start < size and isinstance(block, bytes):
                part = block[: size - start]
                content[start : start + len(part)] = part
        return bytes(content)
