"""Names blocks of ext2, ext3 and ext4 with dumpe2fs and debugfs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from postcrash.model.tree import MADE_BY_MKFS
from postcrash.reports.explanation.block_part import BlockPart, DiskWrite
from postcrash.reports.explanation.disk_image import DiskImage
from postcrash.reports.explanation.programs import output

INODES_MAX = 1024
"""The most inodes that are looked up."""
_ROOT_INODE = 2
_UNNAMED = (*MADE_BY_MKFS, ".postcrash")
"""Inodes that no workload makes."""

_STRUCTURES = re.compile(
    r"(Primary superblock|Backup superblock|Group descriptors?|Reserved GDT blocks|Block bitmap|Inode bitmap|"
    r"Inode table) at (\d+)(?:-(\d+))?"
)
_LABELS = {
    "Primary superblock": "superblock",
    "Group descriptor": "group descriptors",
    "Group descriptors": "group descriptors",
    "Reserved GDT blocks": "reserved group descriptors",
}
_RUN = re.compile(r"\((\d+)(?:-(\d+))?(?:\[u\])?\):(\d+)(?:-\d+)?")
_MAP = re.compile(r"\((?:[DT]?IND|ETB\d+)\):(\d+)")
_LOGGED = re.compile(r"FS block (\d+) logged at (?:sequence \d+, )?journal block (\d+)")
_LOG_BLOCK = re.compile(r"sequence (\d+), type \d+ \((descriptor|commit|revoke)[^)]*\) at block (\d+)")


class _Run(NamedTuple):
    """Blocks `logical` to `last` of a file, at `physical` and after on the disk."""

    logical: int
    last: int
    physical: int


@dataclass
class _Inode:
    """The places of an inode's blocks."""

    directory: bool = False
    runs: list[_Run] = field(default_factory=list)
    maps: set[int] = field(default_factory=set)

    def logical(self, block: int) -> int | None:
        runs = (run for run in self.runs if run.physical <= block <= run.physical + run.last - run.logical)
        return next((run.logical + block - run.physical for run in runs), None)


@dataclass
class _Layout:
    """Sizes, and the structures that have a fixed place: label, group, first and last block."""

    block_bytes: int
    inodes_per_block: int
    inodes_per_group: int
    journal_inode: int
    structures: list[tuple[str, int, int, int]]

    def inodes(self, block: int) -> range:
        """Numbers of the inodes in a block of an inode table."""
        tables = (entry for entry in self.structures if entry[0] == "Inode table" and entry[2] <= block <= entry[3])
        for _, group, start, _ in tables:
            lowest = group * self.inodes_per_group + (block - start) * self.inodes_per_block + 1
            return range(lowest, lowest + self.inodes_per_block)
        return range(0)


def names(disk: DiskImage, written: Sequence[DiskWrite]) -> list[list[BlockPart | None]]:
    """See `block_names.Namer`."""
    layout = _layout(output("dumpe2fs", image=disk.path))
    if layout is None:
        return [[] for _ in written]
    size = layout.block_bytes
    blocks = [range(write.start // size, -(-(write.start + len(write.data)) // size)) for write in written]
    journal = _inodes(disk, [layout.journal_inode])[layout.journal_inode]
    log = _log(disk, journal)
    shown = {block for run in blocks for block in run}
    logged = {copied for block in shown for _, _, copied in [log.get(journal.logical(block), ("", "", 0))]}
    wanted = sorted(shown | logged)
    earlier_owners, unchanged_log = _owners(disk, wanted), _unchanged(disk, written, size)
    disk.finish()
    later_owners, unchanged = _owners(disk, wanted), _unchanged(disk, written, size)
    owners = {
        block: owner
        for block, owner in later_owners.items()
        if block in unchanged or earlier_owners.get(block) == owner
    }
    tables = [inode for block in wanted for inode in layout.inodes(block)]
    paths = _paths(disk, [*owners.values(), *tables])
    inodes = _inodes(disk, owners.values())

    def place(block: int) -> BlockPart | None:
        if label := _structure(layout, block, paths):
            return BlockPart(label)
        return _owned(owners.get(block), block, inodes, paths, size)

    def part(block: int) -> BlockPart | None:
        at = journal.logical(block)
        if at is None:
            return place(block)
        if at == 0:
            return BlockPart("journal superblock")
        kind, sequence, copied = log.get(at, ("", "", 0)) if block in unchanged_log else ("", "", 0)
        if kind != "copy":
            return BlockPart(f"journal {kind} block of transaction {sequence}" if kind else "journal block")
        original = place(copied)
        of = original.label if original else f"block {copied}"
        return BlockPart(f"journal copy (transaction {sequence}) of {of}")

    return [[part(block) for block in run] for run in blocks]


def _layout(text: str) -> _Layout | None:
    def number(name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    block_bytes, inode_bytes = number("Block size"), number("Inode size")
    if not block_bytes or not inode_bytes:
        return None
    structures, group = [], 0
    for line in text.splitlines():
        if found := re.match(r"Group (\d+): ", line):
            group = int(found[1])
        for name, start, end in _STRUCTURES.findall(line):
            structures.append((name, group, int(start), int(end or start)))
    per_block = block_bytes // inode_bytes
    return _Layout(block_bytes, per_block, number("Inodes per group"), number("Journal inode"), structures)


def _structure(layout: _Layout, block: int, paths: dict[int, str]) -> str:
    for name, group, start, end in layout.structures:
        if not start <= block <= end:
            continue
        if name in _LABELS:
            return _LABELS[name]
        label = f"{name.lower()} of group {group}"
        if name != "Inode table":
            return label
        inodes = layout.inodes(block)
        known = [f"{inode} = {paths[inode]}" for inode in inodes if paths.get(inode)]
        return f"{label} (inodes {inodes[0]} to {inodes[-1]}{''.join(f', {one}' for one in known)})"
    return ""


def _owned(
    owner: int | None, block: int, inodes: dict[int, _Inode], paths: dict[int, str], block_bytes: int
) -> BlockPart | None:
    if owner is None:
        return None
    inode = inodes.get(owner, _Inode())
    path = "the root" if owner == _ROOT_INODE else paths.get(owner) or f"inode {owner}"
    if block in inode.maps:
        return BlockPart(f"block map of {path}")
    at = inode.logical(block)
    if at is None:
        return BlockPart(f"attribute block of {path}")
    if inode.directory:
        return BlockPart(f"directory block of {path}")
    return BlockPart(f"data of {path}", at * block_bytes, (at + 1) * block_bytes)


def _unchanged(disk: DiskImage, written: Iterable[DiskWrite], block_bytes: int) -> set[int]:
    """The blocks that still hold what was written there."""
    same = set()
    for write in written:
        for at in range(0, len(write.data), block_bytes):
            part = write.data[at : at + block_bytes]
            if disk.read(write.start + at, len(part)) == part:
                same.add((write.start + at) // block_bytes)
    return same


def _log(disk: DiskImage, journal: _Inode) -> dict[int | None, tuple[str, str, int]]:
    """What each block of the journal is: its kind, its transaction and, for a copy, the block that was copied."""
    if not journal.runs:
        return {}
    log: dict[int | None, tuple[str, str, int]] = {}
    sequence = ""
    for line in output("debugfs", "-R", "logdump -aO", image=disk.path).splitlines():
        if found := _LOG_BLOCK.search(line):
            sequence = found[1]
            log[int(found[3])] = (found[2], sequence, 0)
        elif found := _LOGGED.search(line):
            log[int(found[2])] = ("copy", sequence, int(found[1]))
    return log


def _owners(disk: DiskImage, blocks: Sequence[int]) -> dict[int, int]:
    """The inode of each block that belongs to an inode."""
    (text,) = _debugfs(disk, [f"icheck {' '.join(map(str, blocks))}"])
    return {int(block): int(inode) for block, inode in re.findall(r"^(\d+)\t(\d+)$", text, re.MULTILINE)}


def _paths(disk: DiskImage, inodes: Iterable[int]) -> dict[int, str]:
    wanted = sorted(set(inodes))[:INODES_MAX]
    if not wanted:
        return {}
    (text,) = _debugfs(disk, [f"ncheck {' '.join(map(str, wanted))}"])
    found: dict[int, str] = {}
    for inode, path in sorted(re.findall(r"^(\d+)\t/*([^\n]+)$", text, re.MULTILINE), reverse=True):
        if path not in _UNNAMED:
            found[int(inode)] = path
    return found


def _inodes(disk: DiskImage, inodes: Iterable[int]) -> dict[int, _Inode]:
    wanted = sorted(set(inodes))[:INODES_MAX]
    found = {}
    for inode, text in zip(wanted, _debugfs(disk, [f"stat <{inode}>" for inode in wanted]), strict=True):
        runs = [_Run(int(first), int(last or first), int(physical)) for first, last, physical in _RUN.findall(text)]
        found[inode] = _Inode("Type: directory" in text, runs, set(map(int, _MAP.findall(text))))
    return found


def _debugfs(disk: DiskImage, commands: Sequence[str]) -> list[str]:
    """The output of each command."""
    printed = output("debugfs", "-f", "-", image=disk.path, stdin=commands)
    answers = re.split(r"^debugfs: .*\n", printed, flags=re.MULTILINE)[1:]
    return [*answers, *[""] * len(commands)][: len(commands)]
