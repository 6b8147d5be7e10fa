"""The question to the file systems' tools, and their answer."""

from typing import NamedTuple

PARTS_MAX = 4
"""If one write has more parts than this, the further parts are only counted."""


class DiskWrite(NamedTuple):
    """What one write put where: the byte on the disk, and the data."""

    start: int
    data: bytes


class BlockPart(NamedTuple):
    """A run of a write's blocks: what it is and, for a file's data, which bytes of the file."""

    label: str
    start: int | None = None
    end: int = 0
