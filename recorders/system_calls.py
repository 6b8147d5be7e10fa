"""The table of system calls that all tracers share. It is written in recorders/stopped/src/system_calls.rs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from postcrash._core import system_calls

PathArgument = tuple[int | None, int]
"""The places of a path and, before it, of the descriptor of its folder; None: it starts at the working directory."""


@dataclass(frozen=True, slots=True)
class SystemCall:
    """What a call can do to files, in a word of `Effect` in that file, and the places of its paths."""

    name: str
    effect: str
    paths: tuple[PathArgument, ...]


SYSTEM_CALLS: Mapping[str, SystemCall] = MappingProxyType(
    {name: SystemCall(name, effect, tuple(paths)) for name, effect, paths in system_calls()}
)
"""Calls by name. One that is not here may do anything."""


def calls_that(*effects: str) -> tuple[str, ...]:
    """The names of the calls with one of these effects."""
    return tuple(call.name for call in SYSTEM_CALLS.values() if call.effect in effects)


WRITES = calls_that("write")
"""Calls that write blocks from the first to the last, so that a crash may leave only the first ones."""
FLUSHES = calls_that("flush", "flush-memory", "flush-all")
"""Calls that make something durable and do nothing else."""
DIRECTORY_CALLS = calls_that("names", "open")
"""Calls that do one thing with names. Others, such as io_uring_enter, may do several."""
