"""The files that fill an aged base image."""

from typing import Self

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from postcrash.model.units import BLOCK_BYTES

ROUNDS = 4
"""The number of appends to each file. The files take turns."""
_FILES, _REMOVED_EVERY = 48, 6


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class AgedFiles:
    """Numbered files of `bytes` bytes each. The first of each `removed_every` is removed again.

    The fields are those of `AgedFiles` in model/wire/src/command.rs.
    """

    files: int
    removed_every: int
    bytes: int

    @classmethod
    def of(cls, mib: int) -> Self:
        """The files that have `mib` in all before some of them are removed."""
        append = (mib << 20) // (_FILES * ROUNDS) // BLOCK_BYTES * BLOCK_BYTES
        return cls(_FILES, _REMOVED_EVERY, ROUNDS * append)
