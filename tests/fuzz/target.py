"""What a fuzz target is: a reader of bytes that come from elsewhere, and what it may answer."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Read = Callable[[Path], object]
"""Reads the file at a path."""
Seeds = Callable[[Path], list[bytes]]
"""Makes sound inputs with the real writers, which may use the folder for their files."""


def unchanged(content: bytes) -> bytes:
    """`content` itself."""
    return content


def text(*lines: str) -> Seeds:
    """One input with these lines."""
    return lambda _folder: ["".join(f"{line}\n" for line in lines).encode()]


@dataclass(frozen=True)
class FuzzTarget:
    """A reader under test.

    name    as `--target` names it
    seeds   makes sound inputs
    read    reads the file with an input. It may raise `errors`, each with one line, and nothing else
    errors  the error classes that the reader documents for bad input
    repair  makes a changed input sound where a reader checks it as a whole, such as its checksum
    file    the name of the file that is read, for readers to which it matters
    cpu_seconds  the most time on a CPU for one input
    """

    name: str
    seeds: Seeds
    read: Read
    errors: tuple[type[Exception], ...]
    repair: Callable[[bytes], bytes] = unchanged
    file: str = "input"
    cpu_seconds: float = 10.0

    def __str__(self) -> str:
        return self.name
