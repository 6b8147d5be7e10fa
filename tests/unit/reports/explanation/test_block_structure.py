"""One row for each structure: its fields as the kernel writes them, and how it is described."""

import struct

import pytest

from postcrash.reports.explanation.block_structure import METADATA, structure


def block(*fields: tuple[int, bytes]) -> bytes:
    content = bytearray(4096)
    for place, value in fields:
        content[place : place + len(value)] = value
    return bytes(content)


def jbd2(kind: int, sequence: int, *fields: tuple[int, bytes]) -> bytes:
    return block((0, struct.pack(">III", 0xC03B3998, kind, sequence)), *fields)


def ext(place: int, log_block_size: int = 2, revision: int = 1) -> bytes:
    fields = [(24, struct.pack("<I", log_block_size)), (56, b"\x53\xef"), (76, struct.pack("<I", revision))]
    return block(*((place + at, value) for at, value in fields))


def tree_block(owner: int, flags: int = 1 << 56 | 1, level: int = 0) -> bytes:
    return block((56, struct.pack("<Q", flags)), (80, struct.pack("<QQ", 9, owner)), (100, bytes([level])))


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (jbd2(1, 8), "jbd2 descriptor block (transaction 8)"),
        (jbd2(2, 8), "jbd2 commit block (transaction 8)"),
        (jbd2(5, 8), "jbd2 revoke block (transaction 8)"),
        (jbd2(9, 8), "jbd2 type 9 block (transaction 8)"),
        (jbd2(4, 0, (24, struct.pack(">II", 7, 0))), "jbd2 superblock (sequence 7, log empty)"),
        (jbd2(3, 0, (24, struct.pack(">II", 7, 1))), "jbd2 superblock (sequence 7, log starts at block 1)"),
        (ext(1024), "ext superblock"),
        (ext(0), "ext superblock"),
        (ext(0)[:1024], "ext superblock"),
        (ext(0, log_block_size=7), METADATA),
        (ext(0, revision=2), METADATA),
        (block((64, b"_BHRfS_M"), (72, struct.pack("<Q", 12))), "btrfs superblock (generation 12)"),
        (tree_block(5), "btrfs tree block (file system tree, generation 9)"),
        (tree_block(257), "btrfs tree block (tree 257, generation 9)"),
        (tree_block(2**64 - 6, flags=1 << 56 | 3), "btrfs tree block (log tree, generation 9)"),
        (tree_block(5, flags=0), METADATA),
        (tree_block(5, level=8), METADATA),
        (block((0, b"XFSB")), "xfs superblock"),
        (block((0, struct.pack(">II", 0xFEEDBABE, 3))), "xfs log record (cycle 3)"),
        (block(), METADATA),
        (bytes(512), METADATA),
    ],
)
def test_structures_are_known_by_their_magic(content: bytes, name: str) -> None:
    assert structure(content) == name
