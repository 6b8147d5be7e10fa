"""Names blocks of btrfs with `btrfs inspect-internal`."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from postcrash.reports.explanation.block_part import BlockPart, DiskWrite
from postcrash.reports.explanation.disk_image import DiskImage
from postcrash.reports.explanation.programs import output

BTRFS_BLOCK_BYTES = 4096
NODES_MAX = 2000
"""The most tree blocks that are looked up."""
_INSPECT = ("btrfs", "inspect-internal")
_ROOT_INODE = 256

_SUPERBLOCK = re.compile(r"^bytenr\s+(\d+)$.*?^generation\s+(\d+)$", re.MULTILINE | re.DOTALL)
_NODE_BYTES = re.compile(r"^nodesize\s+(\d+)$", re.MULTILINE)
_CHUNK = re.compile(r"CHUNK_ITEM (\d+)\).*?\n\s+length (\d+) .*? type (\S+)\n(.*?)(?=\titem|\Z)", re.DOTALL)
_STRIPE = re.compile(r"stripe (\d+) devid \d+ offset (\d+)")
_NODE = re.compile(r"^(leaf|node) (\d+) .*?generation (\d+) owner (\w+)", re.MULTILINE)
_NAME = re.compile(r"key \((\d+) INODE_REF (\d+)\).*\n\s+index \d+ namelen \d+ name: (.*)")
_EXTENT = re.compile(
    r"key \((\d+) EXTENT_DATA (\d+)\).*\n.*\n\s+extent data disk byte (\d+) nr (\d+)\n\s+extent data offset (\d+) "
    r"nr (\d+) .*\n\s+extent compression 0 "
)


class _Stripe(NamedTuple):
    """Where a copy of a chunk is on the disk."""

    physical: int
    logical: int
    length: int
    is_data: bool
    copy: int


class _Extent(NamedTuple):
    """Bytes of a file, with their place in the logical address space."""

    logical: int
    length: int
    inode: int
    offset: int


def names(disk: DiskImage, written: Sequence[DiskWrite]) -> list[list[BlockPart | None]]:
    """See `block_names.Namer`."""
    superblocks = output(*_INSPECT, "dump-super", "-a", image=disk.path)
    node_bytes = int((_NODE_BYTES.findall(superblocks) or [0])[0])
    if not node_bytes:
        return [[] for _ in written]
    generations = {int(start): generation for start, generation in _SUPERBLOCK.findall(superblocks)}
    copies = sorted(generations)
    stripes = _stripes(disk)
    blocks = [(write.start + at, write.data[at : at + BTRFS_BLOCK_BYTES]) for write in written for at in _steps(write)]
    unchanged = _unchanged(disk, blocks)
    nodes = _nodes(disk, {_node(start, stripes, node_bytes) for start in unchanged} - {None})
    disk.finish()
    extents, paths = _files(disk)
    unchanged_data = _unchanged(disk, blocks)

    def part(start: int) -> BlockPart | None:
        if start in generations and start in unchanged:
            copy = f" copy {copies.index(start)}" if copies.index(start) else ""
            return BlockPart(f"superblock{copy} (generation {generations[start]})")
        stripe = _stripe(start, stripes)
        if stripe is None:
            return None
        if stripe.is_data:
            return _data(start - stripe.physical + stripe.logical, extents, paths) if start in unchanged_data else None
        label = nodes.get(_node(start, stripes, node_bytes)) if start in unchanged else None
        return BlockPart(f"{label}, copy {stripe.copy + 1}" if stripe.copy else label) if label else None

    return [[part(write.start + at) for at in _steps(write)] for write in written]


def _steps(write: DiskWrite) -> range:
    return range(0, len(write.data), BTRFS_BLOCK_BYTES)


def _unchanged(disk: DiskImage, blocks: Iterable[tuple[int, bytes]]) -> set[int]:
    """The places where the disk still holds what was written there."""
    return {start for start, data in blocks if disk.read(start, len(data)) == data}


def _stripes(disk: DiskImage) -> list[_Stripe]:
    found = []
    for logical, length, kind, stripes in _CHUNK.findall(
        output(*_INSPECT, "dump-tree", "-t", "chunk", image=disk.path)
    ):
        for copy, physical in _STRIPE.findall(stripes):
            found.append(_Stripe(int(physical), int(logical), int(length), kind.startswith("DATA"), int(copy)))
    return found


def _stripe(start: int, stripes: Iterable[_Stripe]) -> _Stripe | None:
    return next((one for one in stripes if one.physical <= start < one.physical + one.length), None)


def _node(start: int, stripes: Iterable[_Stripe], node_bytes: int) -> int | None:
    """The logical address of the tree block that has this byte of the disk."""
    stripe = _stripe(start, stripes)
    if stripe is None or stripe.is_data:
        return None
    logical = start - stripe.physical + stripe.logical
    return logical - logical % node_bytes


def _nodes(disk: DiskImage, wanted: set[int | None]) -> dict[int | None, str]:
    """What each tree block is: its tree, its generation."""
    chosen = sorted(node for node in wanted if node is not None)[:NODES_MAX]
    if not chosen:
        return {}
    options = [word for node in chosen for word in ("-b", str(node))]
    found: dict[int | None, str] = {}
    for kind, node, generation, owner in _NODE.findall(output(*_INSPECT, "dump-tree", *options, image=disk.path)):
        tree = "log tree" if owner == "TREE_LOG" else owner.lower().replace("_", " ").replace("csum", "checksum")
        found[int(node)] = f"{tree} {kind} (generation {generation})"
    return found


def _files(disk: DiskImage) -> tuple[list[_Extent], dict[int, str]]:
    """The places of the files' data, and the path of each inode."""
    text = output(*_INSPECT, "dump-tree", "-t", "fs", image=disk.path)
    refs = {int(inode): (int(parent), name) for inode, parent, name in reversed(_NAME.findall(text))}
    extents = [
        _Extent(int(byte) + int(skipped), int(length), int(inode), int(offset))
        for inode, offset, byte, _, skipped, length in _EXTENT.findall(text)
        if int(byte)
    ]
    return extents, {inode: _path(inode, refs) for inode in refs}


def _path(inode: int, refs: dict[int, tuple[int, str]]) -> str:
    parts: list[str] = []
    visited: set[int] = set()
    while inode != _ROOT_INODE and inode in refs and inode not in visited:
        visited.add(inode)
        inode, name = refs[inode]
        parts.append(name)
    return "/".join(reversed(parts))


def _data(logical: int, extents: Iterable[_Extent], paths: dict[int, str]) -> BlockPart | None:
    for extent in extents:
        if extent.logical <= logical < extent.logical + extent.length:
            at = extent.offset + logical - extent.logical
            return BlockPart(
                f"data of {paths.get(extent.inode) or f'inode {extent.inode}'}", at, at + BTRFS_BLOCK_BYTES
            )
    return None
