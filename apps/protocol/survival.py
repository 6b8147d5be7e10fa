"""Finds out which of a program's changes a crash state has, and whether it lacks a change before one that it has.

External synchrony (OSDI'06) promises two things. What an output depends on is there once the output has left the
machine; and no change is there without all those before it. `Survival` checks the first,
slot by slot. `Prefixes` checks the second: the folder must be what the first n steps made of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations

from postcrash.apps.folder import Folder, content_of
from postcrash.apps.protocol.states import Slots, State
from postcrash.apps.protocol.trace import IN_ORDER, BlockSlot, Change, NameSlot, Protocol, SizeSlot, Slot, Step
from postcrash.model import Entry, Tree
from postcrash.model.units import BLOCK_BYTES

UNORDERED_MAX = 8
"""The most blocks of one step whose order is not known."""

_SPECIAL, _TOLD_APART = "other", ("file", "dir", "symlink", "fifo")
"""The tracer's type of sockets and devices, and the types that it distinguishes."""


class UnorderedError(ValueError):
    """More blocks of one step have no known order than can be tried."""


class Prefixes:
    """The folders that the first steps of a program make, the next one perhaps in part.

    Modes and extended attributes are not compared.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._slots = Slots(protocol)
        self._steps = protocol.steps

    @cached_property
    def _whole(self) -> Mapping[str, set[int]]:
        """By digest of the folder, how many steps may be whole."""
        known: dict[str, set[int]] = {}
        for whole, state in self._states():
            known.setdefault(_digest(state.tree), set()).add(whole)
        return known

    def longest(self, tree: Tree) -> int | None:
        """The most steps that can have been made whole where the folder is `tree`. None if it is no prefix at all.

        Raises UnorderedError, and UnreadFolderError.
        """
        return max(self._whole.get(_digest(tree), ()), default=None)

    def doubtful(self, tree: Tree, end: int) -> tuple[Step, Step] | None:
        """A step with a change before `end`, and a later one that undoes it, where `tree` may be without both.

        So `tree` is what it was before the first, and what it is after the second, but not what it was at `end`. It is
        not known whether the second had been made. None if there is no such doubt. Errors as `longest`.
        """
        known = self._whole.get(_digest(tree), set())
        at_end = {count for count in range(len(self._steps) + 1) if self._is_at(count, end)}
        earlier, later = known - at_end, {count for count in known if count > max(at_end)}
        lacking = [step for count in sorted(earlier - later) for step in self._steps[count:] if step.first < step.end]
        first = next((step for step in lacking if step.first < end), None)
        if first is None or not later or known & at_end:
            return None
        return first, self._steps[min(later) - 1]

    def _is_at(self, count: int, end: int) -> bool:
        """Whether the first `count` steps make all changes before `end`, and no other."""
        return all((step.end <= end) if step.number < count else (step.first >= end) for step in self._changing)

    @cached_property
    def _changing(self) -> list[Step]:
        return [step for step in self._steps if step.first < step.end]

    def missing(self, tree: Tree, end: int) -> Step | None:
        """The first step with a change before `end` that is missing where the steps before it make all of `tree`.

        None if no such step is missing, or `tree` is no prefix. Raises UnorderedError, and UnreadFolderError.
        """
        whole = self.longest(tree)
        left = self._steps[whole:] if whole is not None else ()
        return next((step for step in left if step.first < min(step.end, end)), None)

    def _states(self) -> Iterator[tuple[int, State]]:
        """How many steps are whole, and what the folder is then."""
        yield 0, self._state(0, ())
        for step in self._steps:
            for part in _parts(step, self._slots.protocol.changes[step.first : step.end]):
                yield step.number, self._state(step.first, part, step.end)
            yield step.number + 1, self._state(step.end, ())

    def _state(self, whole: int, part: tuple[Change, ...], end: int | None = None) -> State:
        durable = frozenset(chain(range(whole), (change.index for change in part)))
        return State(self._slots, whole if end is None else end, durable)


def _parts(step: Step, changes: tuple[Change, ...]) -> Iterator[tuple[Change, ...]]:
    """The parts of a step that a crash can leave, apart from the whole step and nothing of it."""
    blocks = [change for change in changes if isinstance(change.slot, BlockSlot)]
    if step.call in IN_ORDER:
        for place in sorted({_place(change) for change in changes})[:-1]:
            yield tuple(change for change in changes if _place(change) <= place)
    elif blocks:
        if len(blocks) > UNORDERED_MAX:
            raise UnorderedError(f"{step.call} changes {len(blocks)} blocks in an order that is not known")
        others = tuple(change for change in changes if not isinstance(change.slot, BlockSlot))
        for count in range(len(blocks) + 1):
            for some in combinations(blocks, count):
                yield some
                yield (*others, *some)


def _place(change: Change) -> int:
    """The block of a file that a write reaches with this change. A name is there before its file has any."""
    if isinstance(change.slot, NameSlot):
        return -1
    if isinstance(change.slot, BlockSlot):
        return change.slot.block
    assert isinstance(change.value, int)
    return (change.value - 1) // BLOCK_BYTES


def _digest(tree: Tree) -> str:
    """Equal where the folders are equal. A folder has no sockets and no devices, so their names are added."""
    special = sorted(path for path, entry in tree.items() if entry.type not in _TOLD_APART)
    folder = Folder.of(Tree([replace(entry, mode=0, xattrs=()) for entry in tree.values()]))
    return "\0".join((folder.digest, *special))


class Survival:
    """Looks in a folder for the changes that must be there. What a later change may have replaced need not be."""

    def __init__(self, protocol: Protocol) -> None:
        self._slots = Slots(protocol)

    def lost(self, tree: Tree, end: int) -> Slot | None:
        """A slot that has lost what the changes before `end` put there. None if there is none.

        Raises UnreadFolderError.
        """
        return self._lost_below(tree, self._slots.protocol.root, "", end)

    def maker(self, slot: Slot, end: int) -> Step | None:
        """The step before the change `end` that made what `slot` holds. None if it was there from the start."""
        made = [change for change in self._slots.of(slot) if change.index < end]
        return self._slots.protocol.steps[made[-1].step] if made else None

    def _lost_below(self, tree: Tree, folder: int, above: str, end: int) -> Slot | None:
        for slot in self._slots.names.get(folder, []):
            inodes = self._values(slot, end)
            entry = tree.get(f"{above}{slot.name}")
            if entry is None:
                if 0 not in inodes:
                    return slot
                continue
            lost = [self._lost_of(tree, entry, slot, inode, end) for inode in inodes if isinstance(inode, int)]
            if all(each is not None for each in lost):
                return lost[0] if len(lost) == 1 else slot
        return None

    def _lost_of(self, tree: Tree, entry: Entry, name: NameSlot, inode: int, end: int) -> Slot | None:
        """What `entry` has lost if it is this inode."""
        if not inode:
            return name
        what = self._slots.protocol.inodes[inode]
        if what.type == _SPECIAL:
            return name if entry.type in _TOLD_APART else None
        if what.type != entry.type or (entry.type == "symlink" and what.target != entry.target):
            return name
        if entry.type == "dir":
            return self._lost_below(tree, inode, f"{entry.path}/", end)
        return self._lost_content(entry, inode, end) if entry.type == "file" else None

    def _lost_content(self, entry: Entry, inode: int, end: int) -> Slot | None:
        size = SizeSlot(inode)
        if entry.size not in self._values(size, end):
            return size
        content = content_of(entry)
        for slot in self._slots.blocks.get(inode, []):
            start = slot.block * BLOCK_BYTES
            if start < entry.size:
                block = content[start : start + BLOCK_BYTES]
                values = [value for value in self._values(slot, end) if isinstance(value, bytes)]
                if not _is_made_of(block, values):
                    return slot
        return None

    def _values(self, slot: Slot, end: int) -> list[int | bytes]:
        """What a slot may hold: what the changes before `end` left there, or a later change puts there."""
        changes = self._slots.of(slot)
        before = [change for change in changes if change.index < end]
        later = (change for change in changes if change.index >= end)
        winners = chain(before[-1:] or [None], later)
        return [self._slots.value(slot, winner) for winner in winners]


def _is_made_of(block: bytes, values: list[bytes]) -> bool:
    """Whether each byte is that of one of the values. Writes to one place may tear, so that parts of both are there."""
    whole = [value.ljust(len(block), b"\0")[: len(block)] for value in values]
    return block in whole or all(byte in choices for byte, choices in zip(block, zip(*whole, strict=True), strict=True))
