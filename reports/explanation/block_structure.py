"""Structures of file systems, known by their magic numbers."""

import struct
from collections.abc import Callable

METADATA = "metadata"

_Probe = Callable[[bytes], str | None]

# jbd2, fs/jbd2 and include/linux/jbd2.h, big-endian: every block except logged data starts with journal_header_t, which
# is h_magic, h_blocktype, h_sequence. In the superblock s_sequence is at byte 24 and s_start, 0 for an empty log, at
# 28.
_JBD2_MAGIC = 0xC03B3998
_JBD2_TYPES = {1: "descriptor", 2: "commit", 5: "revoke"}
_JBD2_SUPERBLOCKS = (3, 4)


def _jbd2(block: bytes) -> str | None:
    magic, kind, sequence = struct.unpack_from(">III", block)
    if magic != _JBD2_MAGIC:
        return None
    if kind in _JBD2_SUPERBLOCKS:
        sequence, start = struct.unpack_from(">II", block, 24)
        state = f"log starts at block {start}" if start else "log empty"
        return f"jbd2 superblock (sequence {sequence}, {state})"
    return f"jbd2 {_JBD2_TYPES.get(kind, f'type {kind}')} block (transaction {sequence})"


# ext2, ext3, ext4, fs/ext4/ext4.h, struct ext4_super_block: it starts at byte 1024 of the disk, and its copies start at
# byte 0 of a block. s_magic is at byte 56. To be sure, s_log_block_size (at most 6) at 24 and s_rev_level (0 or 1) at
# 76 are checked.
_EXT_MAGIC = 0xEF53
_EXT_PLACES = (0, 1024)


def _ext(block: bytes) -> str | None:
    for place in _EXT_PLACES:
        if len(block) < place + 80:
            continue
        (log_block_size,) = struct.unpack_from("<I", block, place + 24)
        (magic,) = struct.unpack_from("<H", block, place + 56)
        (revision,) = struct.unpack_from("<I", block, place + 76)
        if magic == _EXT_MAGIC and log_block_size <= 6 and revision <= 1:
            return "ext superblock"
    return None


# btrfs, include/uapi/linux/btrfs_tree.h (in older kernels fs/btrfs/ctree.h), little-endian: superblock and tree blocks
# both start with checksum (32 bytes), fsid (16), bytenr and flags (8 each). A superblock then has its magic at 64
# and its generation at 72; a tree block (struct btrfs_header) has its generation at 80, owner at 88 and level at 100.
# Flags of a tree block are BTRFS_HEADER_FLAG_WRITTEN (bit 0), perhaps BTRFS_HEADER_FLAG_RELOC (bit 1), and
# BTRFS_MIXED_BACKREF_REV (1) in the top byte.
_BTRFS_MAGIC = b"_BHRfS_M"
_BTRFS_FLAGS = {1 << 56 | 1, 1 << 56 | 3}
_BTRFS_LEVELS = 8
_BTRFS_TREE = "btrfs tree block"
_BTRFS_OWNERS = {
    1: "root tree",
    2: "extent tree",
    3: "chunk tree",
    4: "device tree",
    5: "file system tree",
    7: "checksum tree",
    9: "UUID tree",
    10: "free space tree",
    2**64 - 6: "log tree",
    2**64 - 9: "data relocation tree",
}


def _btrfs(block: bytes) -> str | None:
    if block[64:72] == _BTRFS_MAGIC:
        return f"btrfs superblock (generation {struct.unpack_from('<Q', block, 72)[0]})"
    flags, generation, owner = (struct.unpack_from("<Q", block, place)[0] for place in (56, 80, 88))
    if flags not in _BTRFS_FLAGS or block[100] >= _BTRFS_LEVELS:
        return None
    return f"{_BTRFS_TREE} ({_BTRFS_OWNERS.get(owner, f'tree {owner}')}, generation {generation})"


# xfs, fs/xfs/libxfs/xfs_format.h and xfs_log_format.h, big-endian: the superblock starts with XFS_SB_MAGIC, "XFSB". A
# log record starts with XLOG_HEADER_MAGIC_NUM and its cycle.
_XFS_SUPERBLOCK_MAGIC = b"XFSB"
_XFS_LOG_MAGIC = 0xFEEDBABE
_XFS_LOG = "xfs log record"


def _xfs(block: bytes) -> str | None:
    if block[:4] == _XFS_SUPERBLOCK_MAGIC:
        return "xfs superblock"
    magic, cycle = struct.unpack_from(">II", block)
    return f"{_XFS_LOG} (cycle {cycle})" if magic == _XFS_LOG_MAGIC else None


_PROBES: tuple[_Probe, ...] = (_jbd2, _ext, _btrfs, _xfs)


def structure(block: bytes) -> str:
    """Returns the known structure in `block` (at least one sector), or `METADATA`."""
    return next((name for probe in _PROBES if (name := probe(block))), METADATA)


def continues(name: str) -> bool:
    """Whether blocks without a name of their own belong to the structure `name` that they follow in one write."""
    return name.startswith((_BTRFS_TREE, _XFS_LOG))
