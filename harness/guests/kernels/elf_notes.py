"""Notes of ELF files (elf(5), SHT_NOTE), in which a kernel says which build it is and how it can be started."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NOTES = 4
"""Type of the program headers of notes, PT_NOTE."""
_NOTE = struct.Struct("<III")
_BUILD_ID = (b"GNU\0", 3)
"""Name and type of the note that the linker makes of all that it links, NT_GNU_BUILD_ID."""
_BUILD_ID_BYTES_MAX = 64


class Note(NamedTuple):
    """A note: who defines its type, the type, and what it says."""

    name: bytes
    kind: int
    content: bytes


def program_headers(elf: bytes | mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Type, offset and length of each segment of a 64-bit ELF file. Damage ends them."""
    if len(elf) < 64 or elf[:5] != b"\x7fELF\x02":
        return
    (table,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for header in (table + number * size for number in range(count)):
        if size < 56 or header + size > len(elf):
            return
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, header)
        yield kind, offset, length


def notes(elf: bytes | mmap.mmap) -> Iterator[Note]:
    """The notes of a 64-bit ELF file. Damage ends them."""
    for kind, offset, length in program_headers(elf):
        if kind == _NOTES:
            yield from _notes_in(elf[offset : offset + length])


def _notes_in(segment: bytes) -> Iterator[Note]:
    at = 0
    while at + _NOTE.size <= len(segment):
        name_bytes, content_bytes, kind = _NOTE.unpack_from(segment, at)
        start = at + _NOTE.size
        behind = start + _aligned(name_bytes)
        yield Note(segment[start : start + name_bytes], kind, segment[behind : behind + content_bytes])
        at = behind + _aligned(content_bytes)


def _aligned(length_bytes: int) -> int:
    return (length_bytes + 3) // 4 * 4


def build_id(file: Path) -> str:
    """The GNU build id of an ELF file, hexadecimal. Empty if the file is none, or has none. Raises OSError."""
    with file.open("rb") as opened:
        if not file.stat().st_size:
            return ""
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = (note.content for note in notes(content) if note[:2] == _BUILD_ID)
            id = next(found, b"")
    return id.hex() if len(id) <= _BUILD_ID_BYTES_MAX else ""
