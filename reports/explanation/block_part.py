"""Writes whose blocks file system tools name, and the named parts."""

from typing import NamedTuple

PARTS_MAX = 4
"""If one write has more parts than this, the further parts are only counted."""


class DiskWrite(NamedTuple):
    """A write: the byte on the disk where it starts, and its data."""

    start: int
    data: bytes


class BlockPart(NamedTuple):
    """A run of a write's blocks: its name and, for a file's data, the bytes of the file."""

    label: str
    start: int | None = None
    end: int = 0
