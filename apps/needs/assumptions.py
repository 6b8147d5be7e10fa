"""What properties of a file system imply for the changes of a protocol.

A property becomes implications: if some changes are durable, or a call has returned, then other changes are durable, or
later ones of the same slots are. The properties are those of the catalogue (docs/properties.md). Here they are stated
for all calls of a program, not for the workloads of a family. Without any property there is what documents promise of
fsync and its relatives.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from postcrash.apps.protocol.trace import (
    STORE,
    BlockSlot,
    Change,
    CutSlot,
    FlushedRange,
    NameSlot,
    Protocol,
    SizeSlot,
    Slot,
    Step,
)
from postcrash.model.units import BLOCK_BYTES
from postcrash.recorders.system_calls import DIRECTORY_CALLS, WRITES


@dataclass(frozen=True, slots=True)
class Implication:
    """If all changes in `durable` are durable, and step `returned` has returned, so are all in `then`.

    `returned` is None if nothing has to have returned. Of `then`, a change counts as durable if a later one of the same
    slot is. Changes are given by their indices.
    """

    durable: frozenset[int]
    then: frozenset[int]
    returned: int | None = None


class Calls:
    """The steps of a protocol, seen as operations: which write, append, change names, and what they concern."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.steps = protocol.steps

    def changes(self, step: Step) -> tuple[Change, ...]:
        """The changes of a step."""
        return self.protocol.changes[step.first : step.end]

    def names(self, step: Step) -> list[Change]:
        """The changes of names."""
        return [change for change in self.changes(step) if isinstance(change.slot, NameSlot)]

    def blocks(self, step: Step) -> list[Change]:
        """The changes of blocks."""
        return [change for change in self.changes(step) if isinstance(change.slot, BlockSlot)]

    def sizes(self, step: Step) -> list[Change]:
        """The changes of sizes."""
        return [change for change in self.changes(step) if isinstance(change.slot, SizeSlot)]

    @cached_property
    def directory(self) -> list[Step]:
        """Calls that change names."""
        return [step for step in self.steps if step.call in DIRECTORY_CALLS and self.names(step)]

    @cached_property
    def renames(self) -> list[Step]:
        """Renames. An exchange of two names is none (A-exchange)."""
        return [step for step in self.steps if _renames(step) and self.renamed(step)]

    @cached_property
    def writes(self) -> list[Step]:
        """Calls that write bytes to a file."""
        return [step for step in self.steps if step.call in WRITES and self.changes(step)]

    @cached_property
    def stores(self) -> list[Step]:
        """What was stored through mappings."""
        return [step for step in self.steps if step.call == STORE]

    @cached_property
    def appends(self) -> list[Step]:
        """Writes after which the file is longer."""
        return [step for step in self.writes if any(_grows(size) for size in self.sizes(step))]

    @cached_property
    def data_appends(self) -> list[Step]:
        """Appends, and stores that only put bytes behind others in files that the program has made itself."""
        numbers = {step.number for step in self.appends} | self._filling
        return [step for step in self.steps if step.number in numbers]

    @cached_property
    def new(self) -> frozenset[int]:
        """Inodes that had no name before."""
        old = {value for slot, value in self.protocol.base.items() if isinstance(slot, NameSlot)}
        return frozenset(inode for inode in self.protocol.inodes if inode not in old)

    @cached_property
    def _filling(self) -> set[int]:
        """Stores through mappings that put bytes behind those that the block had, as appending does."""
        now = dict(self.protocol.base)
        filling = set()
        for step in self.steps:
            blocks = [(change.slot, change.value, now.get(change.slot, b"")) for change in self.blocks(step)]
            is_new = all(slot.inode in self.new for slot, _, _ in blocks if isinstance(slot, BlockSlot))
            if step.call == STORE and is_new and all(_begins_with(new, old) for _, new, old in blocks):
                filling.add(step.number)
            now.update((slot, new) for slot, new, _ in blocks)
        return filling

    @cached_property
    def overwrites(self) -> list[Step]:
        """Writes after which the file is as long as before."""
        return [step for step in self.writes if not self.sizes(step)]

    @cached_property
    def truncates(self) -> list[Step]:
        """Calls of truncate."""
        return [step for step in self.steps if step.call in ("truncate", "ftruncate") and self.changes(step)]

    def is_file(self, name: Change) -> bool:
        """Whether a name is given to a file."""
        return name.value in self.protocol.inodes and self.protocol.inodes[int(name.value)].type == "file"

    def file(self, step: Step) -> int:
        """The file that a write concerns; of several, the first."""
        return next(change.slot.inode for change in self.changes(step) if not isinstance(change.slot, NameSlot))

    def has_changed(self, slot: Slot, first: int, end: int) -> bool:
        """Whether one of the changes from `first` up to `end` is of the slot."""
        return any(change.slot == slot for change in self.protocol.changes[first:end])

    def renamed(self, step: Step) -> list[tuple[Change, bool]]:
        """The new name of a rename, and whether it had stood for something. None of an exchange, which has two."""
        named = [(change, bool(change.before)) for change in self.names(step) if change.value]
        return named if len(named) == 1 else []

    def written(self, inode: int, before: Step) -> list[Change]:
        """The changes that calls which write made to a file before a step."""
        steps = (step for step in self.writes if step.number < before.number and self.file(step) == inode)
        return [change for step in steps for change in self.changes(step)]

    def appended(self, step: Step) -> list[Change]:
        """The blocks of an append that have bytes behind the old end."""
        end = min(size.before for size in self.sizes(step) if _grows(size))
        slots = ((change, change.slot) for change in self.blocks(step))
        return [
            change for change, slot in slots if isinstance(slot, BlockSlot) and (slot.block + 1) * BLOCK_BYTES > end
        ]

    def first_bytes(self, step: Step) -> Iterator[frozenset[int]]:
        """Changes that show the first byte that an append added. Zeros show nothing."""
        sizes = [size for size in self.sizes(step) if _grows(size)]
        if not sizes:
            yield from self.visible(step)
            return
        first = min(size.before for size in sizes) // BLOCK_BYTES
        for block in self.blocks(step):
            if isinstance(block.slot, BlockSlot) and block.slot.block == first:
                yield from (frozenset({size.index, block.index}) for size in sizes)

    def visible(self, step: Step) -> Iterator[frozenset[int]]:
        """Changes that show the step. A block behind the old end shows nothing: the size, which must be there, does."""
        end = max((size.before for size in self.sizes(step) if _grows(size)), default=None)
        for change in self.changes(step):
            is_behind = (
                end is not None and isinstance(change.slot, BlockSlot) and change.slot.block * BLOCK_BYTES >= end
            )
            if not is_behind:
                yield frozenset({change.index})


def _begins_with(new: int | bytes, old: int | bytes) -> bool:
    return isinstance(new, bytes) and isinstance(old, bytes) and new.startswith(old)


def _grows(size: Change) -> bool:
    return isinstance(size.value, int) and size.value > size.before


def _covers(size: Change, block: int) -> bool:
    return isinstance(size.value, int) and size.value > block * BLOCK_BYTES


Implications = Callable[[Calls], Iterable[Implication]]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A property of the catalogue, by its name, and its implications for a protocol."""

    name: str
    implications: Implications


def promised(calls: Calls) -> Iterator[Implication]:
    """What documents promise of fsync and its relatives: all that their files and directories held is durable.

    What other threads changed while the call was under way is not promised.
    """
    for step in calls.steps:
        if step.everything or step.durable:
            earlier = *calls.protocol.changes[: step.known], *calls.changes(step)
            covered = [each.index for each in earlier if step.everything or _is_covered(calls, each, step)]
            yield Implication(frozenset(), frozenset(covered), step.number)
            for flushed in step.durable:
                yield from _reaches(calls, flushed, step, earlier)
    yield from _cuts(calls)


def _is_covered(calls: Calls, change: Change, step: Step) -> bool:
    return any(_covers_change(calls, flushed, change, step) for flushed in step.durable)


def _covers_change(calls: Calls, flushed: FlushedRange, change: Change, step: Step) -> bool:
    """Whether what a flush makes durable includes the change. `_reaches` deals with the sizes of ranges."""
    if flushed.inode != owner_of(change) or (isinstance(change.slot, NameSlot) and not step.covers_names):
        return False
    if flushed.end is None:
        return True
    if not isinstance(change.slot, BlockSlot):
        return False
    start = change.slot.block * BLOCK_BYTES
    is_in_range = start < flushed.end and flushed.start < start + BLOCK_BYTES
    is_own = change.step == step.number if flushed.own else calls.steps[change.step].call == STORE
    return is_in_range and is_own


def _reaches(calls: Calls, flushed: FlushedRange, step: Step, earlier: Iterable[Change]) -> Iterator[Implication]:
    """A flush of a range promises that the file reaches to its end, or as far as it did.

    If a size that is too small is durable, so is the next one that is not.
    """
    if flushed.end is None:
        return
    slot = SizeSlot(flushed.inode)
    sizes = [change for change in earlier if change.slot == slot]
    base = calls.protocol.base.get(slot, 0)
    now = sizes[-1].value if sizes else base
    if not isinstance(base, int) or not isinstance(now, int):
        return
    end = min(flushed.end, now)
    waiting: list[frozenset[int]] = [frozenset()] if base < end else []
    for size in sizes:
        if isinstance(size.value, int) and size.value < end:
            waiting.append(frozenset({size.index}))
            continue
        yield from (Implication(durable, frozenset({size.index}), step.number) for durable in waiting)
        waiting = []


def _cuts(calls: Calls) -> Iterator[Implication]:
    """A size, and that the file was cut off to it or an earlier one, stand in the inode: they are durable together."""
    sizes: dict[int, list[Change]] = {}
    for change in calls.protocol.changes:
        if isinstance(change.slot, SizeSlot):
            sizes.setdefault(change.slot.inode, []).append(change)
    for cut in calls.protocol.changes:
        if isinstance(cut.slot, CutSlot):
            itself = max(each.index for each in sizes[cut.slot.inode] if each.index < cut.index)
            yield Implication(frozenset({cut.index}), frozenset({itself}))
            later = [each.index for each in sizes[cut.slot.inode] if each.index >= itself]
            yield from (Implication(frozenset({index}), frozenset({cut.index})) for index in later)


def owner_of(change: Change) -> int:
    """The directory or file whose flush covers a change."""
    return change.slot.folder if isinstance(change.slot, NameSlot) else change.slot.inode


def _whole(
    calls: Calls, step: Step, when: Iterable[frozenset[int]], returned: int | None = None
) -> Iterator[Implication]:
    whole = frozenset(change.index for change in calls.changes(step))
    yield from (Implication(durable, whole, returned) for durable in when)


def _atomic(select: Callable[[Calls], list[Step]]) -> Implications:
    """If a step can be seen, it is whole."""

    def implications(calls: Calls) -> Iterator[Implication]:
        for step in select(calls):
            yield from _whole(calls, step, calls.visible(step))

    return implications


Related = Callable[[Calls, Step, Step], bool]


def _always(calls: Calls, first: Step, later: Step) -> bool:
    return True


def _same_file(calls: Calls, first: Step, later: Step) -> bool:
    return calls.file(first) == calls.file(later)


def _other_file(calls: Calls, first: Step, later: Step) -> bool:
    return not _same_file(calls, first, later)


def _other_directory(calls: Calls, first: Step, later: Step) -> bool:
    folders = [
        {change.slot.folder for change in calls.names(step) if isinstance(change.slot, NameSlot)}
        for step in (first, later)
    ]
    return not folders[0] & folders[1]


def _any(calls: Calls) -> list[Step]:
    return [step for step in calls.steps if step.first < step.end]


def _ordered(
    select: Callable[[Calls], list[Step]],
    later: Callable[[Calls], list[Step]] = _any,
    related: Related = _always,
    shown: Callable[[Calls, Step], Iterator[frozenset[int]]] = Calls.visible,
) -> Implications:
    """If a step of `later` can be seen, the selected ones before it are whole. `shown` says by what it is seen."""

    def implications(calls: Calls) -> Iterator[Implication]:
        for first, after in product(select(calls), later(calls)):
            if first.number < after.number and related(calls, first, after):
                yield from _whole(calls, first, shown(calls, after))

    return implications


def _returning(select: Callable[[Calls], list[Step]]) -> Implications:
    """A selected step is durable when it returns."""

    def implications(calls: Calls) -> Iterator[Implication]:
        for step in select(calls):
            yield from _whole(calls, step, [frozenset()], step.number)

    return implications


def _safe_append(calls: Calls) -> Iterator[Implication]:
    """If a file has grown, all bytes that were appended up to its new end are there."""
    for step in calls.appends:
        earlier = [each for each in calls.appends if each.number <= step.number and _same_file(calls, each, step)]
        slots = [(each.index, each.slot) for append in earlier for each in calls.appended(append)]
        for size in calls.sizes(step):
            written = [index for index, slot in slots if isinstance(slot, BlockSlot) and _covers(size, slot.block)]
            yield Implication(frozenset({size.index}), frozenset(written))


def _flushed_name(is_new: Callable[[Step], bool], *flushes: str) -> Implications:
    """One of these calls, of a file, makes the names durable that a selected step gave it, while it has them."""

    def implications(calls: Calls) -> Iterator[Implication]:
        for step in calls.directory:
            for change in calls.names(step):
                if calls.is_file(change) and is_new(step):
                    for flush in calls.steps[step.number + 1 :]:
                        if calls.has_changed(change.slot, change.index + 1, flush.first):
                            break
                        if flush.call in flushes and any(each.inode == change.value for each in flush.durable):
                            yield Implication(frozenset(), frozenset({change.index}), flush.number)

    return implications


def _flushed_entry(is_new: Callable[[Step], bool], flush: str) -> Implications:
    """This call, of a directory, makes the names of files durable that a selected step had put into it."""

    def implications(calls: Calls) -> Iterator[Implication]:
        for step in calls.directory:
            named = [each for each in calls.names(step) if is_new(step) and calls.is_file(each)]
            for change, after in product(named, calls.steps[step.number + 1 :]):
                is_of_it = after.call == flush and any(each.inode == owner_of(change) for each in after.durable)
                if is_of_it and change.index < after.known:
                    yield Implication(frozenset(), frozenset({change.index}), after.number)

    return implications


def _creates(step: Step) -> bool:
    return not _renames(step) and not links(step)


def _renames(step: Step) -> bool:
    return step.call.startswith("rename")


def links(step: Step) -> bool:
    """Whether the step gives a file another name."""
    return step.call in ("link", "linkat")


def _safe_rename(replacing: bool) -> Implications:
    """If a renamed file has its new name, what had been written to it is there."""

    def implications(calls: Calls) -> Iterator[Implication]:
        for step in calls.renames:
            for name, replaces in calls.renamed(step):
                if replaces == replacing and isinstance(name.value, int) and name.value in calls.new:
                    written = frozenset(change.index for change in calls.written(name.value, step))
                    yield Implication(frozenset({name.index}), written)

    return implications


def _append_then_rename(calls: Calls) -> Iterator[Implication]:
    """If anything later can be seen, an append to a file and the rename of that file are whole."""
    for append, rename in product(calls.appends, calls.renames):
        renamed = {change.value for change, _ in calls.renamed(rename)}
        if append.number < rename.number and calls.file(append) in renamed:
            for later in _any(calls):
                if later.number > rename.number:
                    for step in (append, rename):
                        yield from _whole(calls, step, calls.visible(later))


def _in_blocks(select: Callable[[Calls], list[Step]], one: bool) -> Callable[[Calls], list[Step]]:
    return lambda calls: [step for step in select(calls) if _is_in_one_block(calls, step) == one]


def _is_in_one_block(calls: Calls, step: Step) -> bool:
    """Whether all that a write changes lies in one block, also the zeros behind the old end."""
    blocks = {change.slot.block for change in calls.blocks(step) if isinstance(change.slot, BlockSlot)}
    for size in calls.sizes(step):
        if isinstance(size.value, int):
            blocks |= {size.before // BLOCK_BYTES, (size.value - 1) // BLOCK_BYTES}
    return len(blocks) == 1


ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption("P1", _ordered(lambda calls: calls.directory, lambda calls: calls.directory)),
    Assumption("P2", _safe_append),
    Assumption(
        "P3",
        _ordered(
            lambda calls: calls.data_appends, lambda calls: calls.data_appends, _other_file, shown=Calls.first_bytes
        ),
    ),
    Assumption("P4", _flushed_name(_creates, "fsync", "fdatasync", "msync")),
    Assumption("P5", _safe_rename(replacing=True)),
    Assumption("O-block-append", _atomic(_in_blocks(lambda calls: calls.appends, one=True))),
    Assumption("O-blocks", _atomic(_in_blocks(lambda calls: calls.writes, one=False))),
    Assumption("O-dir", _atomic(lambda calls: calls.directory)),
    Assumption("O-overwrite-any", _ordered(lambda calls: calls.overwrites)),
    Assumption("O-append-any", _ordered(lambda calls: calls.appends)),
    Assumption("O-append-append", _ordered(lambda calls: calls.appends, lambda calls: calls.appends, _same_file)),
    Assumption("O-append-rename-any", _append_then_rename),
    Assumption("O-dir-any", _ordered(lambda calls: calls.directory)),
    Assumption("S-atomic", _atomic(lambda calls: calls.writes)),
    Assumption("S-sequential", _ordered(lambda calls: calls.writes, lambda calls: calls.writes)),
    Assumption("S-sync-dir", _returning(lambda calls: calls.directory)),
    Assumption("A-rename", _atomic(lambda calls: calls.renames)),
    Assumption("A-truncate", _atomic(lambda calls: calls.truncates)),
    Assumption("R-rename-new", _safe_rename(replacing=False)),
    Assumption("R-same-file", _ordered(lambda calls: calls.writes, lambda calls: calls.writes, _same_file)),
    Assumption("R-two-files", _ordered(lambda calls: calls.writes, lambda calls: calls.writes, _other_file)),
    Assumption("R-two-dirs", _ordered(lambda calls: calls.directory, lambda calls: calls.directory, _other_directory)),
    Assumption("R-append-dir", _ordered(lambda calls: calls.appends, lambda calls: calls.directory)),
    Assumption("R-dir-append", _ordered(lambda calls: calls.directory, lambda calls: calls.appends)),
    Assumption("R-truncate-any", _ordered(lambda calls: calls.truncates)),
    Assumption("R-mmap-any", _ordered(lambda calls: calls.stores)),
    Assumption("D-return-data", _returning(lambda calls: calls.writes)),
    Assumption("D-fsync-rename", _flushed_name(_renames, "fsync")),
    Assumption("D-fsync-link", _flushed_name(links, "fsync")),
    Assumption("D-fdatasync-rename", _flushed_name(_renames, "fdatasync")),
    Assumption("D-fdatasync-link", _flushed_name(links, "fdatasync")),
    Assumption("D-fdatasync-dir-name", _flushed_entry(_creates, "fdatasync")),
    Assumption("D-fdatasync-dir-rename", _flushed_entry(_renames, "fdatasync")),
    Assumption("D-fdatasync-dir-link", _flushed_entry(links, "fdatasync")),
)
"""The properties of the catalogue that say something of names, sizes and blocks, in the order of the tables."""


def implications_with(protocol: Protocol, names: Collection[str]) -> frozenset[Implication]:
    """The implications of a file system that keeps what documents promise and has these properties."""
    implications = implications_of(protocol)
    return frozenset[Implication]().union(*(implications[name] for name in ("", *names)))


@lru_cache(maxsize=8)
def implications_of(protocol: Protocol) -> dict[str, frozenset[Implication]]:
    """For each property, by its name, its implications for the protocol; and those that documents promise, under ""."""
    calls = Calls(protocol)
    found = {"": promised(calls), **{each.name: each.implications(calls) for each in ASSUMPTIONS}}
    return {
        name: frozenset(implication for implication in implications if implication.then - implication.durable)
        for name, implications in found.items()
    }
