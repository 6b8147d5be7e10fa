"""Positions in the log of QEMU's blklogwrites, which goes on growing as long as QEMU runs."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_SUPERBLOCK = struct.Struct("<QQQI")
_SUPERBLOCK_BYTES = 512


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The end of a growing log: how many entries and bytes it has."""

    entries: int
    size: int

    @classmethod
    def end_of(cls, log: Path) -> Self:
        """Where `log` ends now. The superblock comes with the first entry. Errors as of `cut`."""
        size = log.stat().st_size
        return cls(_superblock(log)[2], size) if size else cls(0, _SUPERBLOCK_BYTES)

    def cut(self, log: Path, out: Path) -> None:
        """Write what `log` has gained behind this position to `out`, as a log.

        Raises OSError if that fails, and ValueError if `log` is no log or has lost entries.
        """
        magic, version, entries, sector_bytes = _superblock(log)
        if entries < self.entries:
            raise ValueError(f"{log}: it has {entries} entries, and had {self.entries}")
        with log.open("rb") as file:
            file.seek(self.size)
            behind = file.read()
        superblock = _SUPERBLOCK.pack(magic, version, entries - self.entries, sector_bytes)
        out.write_bytes(superblock.ljust(_SUPERBLOCK_BYTES, b"\0") + behind)


def _superblock(log: Path) -> tuple[int, int, int, int]:
    """Magic, version, number of entries and bytes of a sector."""
    with log.open("rb") as file:
        content = file.read(_SUPERBLOCK.size)
    if len(content) < _SUPERBLOCK.size:
        raise ValueError(f"{log}: {len(content)} bytes cannot hold a superblock")
    magic, version, entries, sector_bytes = _SUPERBLOCK.unpack(content)
    return magic, version, entries, sector_bytes
