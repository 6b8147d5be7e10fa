"""Where the crash states of a recording are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from postcrash._core import Interval, Recording, intervals


@dataclass(frozen=True)
class Place:
    """Where crash states are: a recording, the base image that it was made on, and the device model."""

    recording: Recording
    base: Path
    base_id: str
    model: str
    _losses: dict[int, Callable[[int, int], int]] = field(default_factory=dict)

    @cached_property
    def intervals(self) -> list[Interval]:
        """The crash intervals."""
        return intervals(self.recording, self.base, self.model)

    def losses(self, interval: int) -> Callable[[int, int], int]:
        """A function that counts the pieces lost by a version of a component of the interval."""
        if interval not in self._losses:
            self._losses[interval] = lru_cache(maxsize=None)(
                lambda component, version: len(self.intervals[interval].lost([(component, version)]))
            )
        return self._losses[interval]
