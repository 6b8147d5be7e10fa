"""How each kind of argument is written in a workload, and its limits."""

import re
from collections.abc import Callable

from postcrash.model.operation import HANDLE, Kind
from postcrash.model.tree import MADE_BY_MKFS, ROOT_PATH
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES

KIB = 1024
MIB = 1024 * KIB

PATH_BYTES_MAX = 1023
"""Limit for a path and for a symbolic link's target. xfs takes no longer target."""
COMPONENTS_MAX = 64
"""The agent reads no deeper directories."""
COMPONENT_BYTES_MAX = 255
"""NAME_MAX of Linux, include/uapi/linux/limits.h."""
OFFSET_MAX = 1024 * MIB
LENGTH_MAX = 64 * MIB
SECONDS_MAX = 3600
XATTR_NAME_BYTES_MAX = 255
"""XATTR_NAME_MAX of Linux, include/uapi/linux/limits.h."""
XATTR_VALUE_BYTES_MAX = 1024
FLUSHES_MAX = 100
"""How many flushes of a program can be left out."""
COMMAND_BYTES_MAX = 4000
LINE_BYTES_MAX = 2000
"""Of a line that a program says."""
"""Small enough for one ext4 attribute block beside others."""

MODES = ("none", "keep-size", "zero-range", "zero-range-keep-size", "punch-hole", "collapse-range", "insert-range")
SHIFTS = frozenset({"collapse-range", "insert-range"})
"""The modes that move what is behind their range."""
NODES = ("fifo", "socket", "char", "block")
"""Special files."""
XATTR_NAMESPACE = "user."
"""The namespace that observations show."""
UNLISTED = (".postcrash", ".nilfs", ".aged")
"""Names in the root directory that are not listed where we or mkfs have put them there: the agent's own file, nilfs2's,
and the folder of files that fill aged base images. A program that changes one of these is refused."""
RESERVED = (*UNLISTED, *MADE_BY_MKFS)
"""Names in the root directory that no workload can have."""
RESERVED_ANYWHERE = ".postcrash-new"
"""What the agent makes in every directory to see whether the directory can be used."""

_SIZE = re.compile(r"([0-9]{1,12})([KM]?)")
_UNITS = {"": 1, "K": KIB, "M": MIB}


def is_naturally_aligned(offset: int, length: int) -> bool:
    """Whether the length is a power of two and the offset a multiple of it, as RWF_ATOMIC asks for: readv(2)."""
    return length > 0 and length & (length - 1) == 0 and offset % length == 0


class ArgumentError(ValueError):
    """An argument is not what it should be. The text says what was expected."""


def read_argument(kind: Kind, text: str) -> str | int:
    """The value that `text` stands for: the number of bytes for offsets, lengths and sizes, else the text itself.

    Raises `ArgumentError`, which says what was expected instead.
    """
    return _READERS[kind](text)


def _bytes_between(least: int, most: int, multiple: int = 1) -> Callable[[str], int]:
    expected = f"a number of bytes from {least} to {most} (4096, 4K, 1M)"
    if multiple > 1:
        expected = f"a multiple of {multiple} from {least} to {most} (4096, 4K, 1M)"

    def read(text: str) -> int:
        match = _SIZE.fullmatch(text)
        if match:
            value = int(match[1]) * _UNITS[match[2]]
            if least <= value <= most and value % multiple == 0:
                return value
        raise ArgumentError(expected)

    return read


def _seconds(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= SECONDS_MAX:
        raise ArgumentError(f"a number of seconds from 1 to {SECONDS_MAX}")
    return int(text)


def _flushes(text: str) -> str:
    if not re.fullmatch(rf"[1-9][0-9]{{0,5}}(,[1-9][0-9]{{0,5}}){{0,{FLUSHES_MAX - 1}}}", text):
        raise ArgumentError(f"numbers of flushes, such as 3,5: at most {FLUSHES_MAX}")
    return text


def _path(text: str) -> str:
    components = text.split("/")
    if text.startswith("/"):
        raise ArgumentError("a path relative to the mount point")
    if any(component in ("", ".", "..") for component in components):
        raise ArgumentError("a path without empty, `.` or `..` components")
    if text.startswith(HANDLE):
        raise ArgumentError(f"a path that does not begin with {HANDLE}, as handles do")
    if RESERVED_ANYWHERE in components:
        raise ArgumentError(f"a path other than {RESERVED_ANYWHERE}, which is reserved")
    if components[0] in RESERVED:
        raise ArgumentError(f"a path other than {components[0]}, which is reserved")
    if any(_byte_count(component) > COMPONENT_BYTES_MAX for component in components):
        raise ArgumentError(f"path components of at most {COMPONENT_BYTES_MAX} bytes")
    if len(components) > COMPONENTS_MAX:
        raise ArgumentError(f"a path of at most {COMPONENTS_MAX} components")
    return _text("a path", PATH_BYTES_MAX)(text)


def _file(text: str) -> str:
    return _handle(text) if text.startswith(HANDLE) else _path(text)


def _file_or_root(text: str) -> str:
    return text if text == ROOT_PATH else _file(text)


def _handle(text: str) -> str:
    if not text.startswith(HANDLE):
        raise ArgumentError(f"a handle, {HANDLE} and the path that was opened")
    return HANDLE + _path(text.removeprefix(HANDLE))


def _text(what: str, bytes_max: int, bytes_min: int = 1) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not bytes_min <= _byte_count(text) <= bytes_max:
            raise ArgumentError(f"{what} of {bytes_min} to {bytes_max} bytes")
        return text

    return read


def _one_of(what: str, words: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ArgumentError(f"{what} ({', '.join(words)})")
        return text

    return read


def _xattr_name(text: str) -> str:
    if not text.startswith(XATTR_NAMESPACE) or text == XATTR_NAMESPACE:
        raise ArgumentError(f"an attribute name that starts with {XATTR_NAMESPACE}")
    return _text("an attribute name", XATTR_NAME_BYTES_MAX)(text)


def _byte_count(text: str) -> int:
    return len(text.encode())


_READERS: dict[Kind, Callable[[str], str] | Callable[[str], int]] = {
    Kind.PATH: _path,
    Kind.FILE: _file,
    Kind.FILE_OR_ROOT: _file_or_root,
    Kind.HANDLE: _handle,
    Kind.TARGET: _text("a target", PATH_BYTES_MAX),
    Kind.OFFSET: _bytes_between(0, OFFSET_MAX),
    Kind.SECTOR_OFFSET: _bytes_between(0, OFFSET_MAX, SECTOR_BYTES),
    Kind.BLOCK_OFFSET: _bytes_between(0, OFFSET_MAX, BLOCK_BYTES),
    Kind.LENGTH: _bytes_between(1, LENGTH_MAX),
    Kind.SECTOR_LENGTH: _bytes_between(SECTOR_BYTES, LENGTH_MAX, SECTOR_BYTES),
    Kind.SIZE: _bytes_between(0, OFFSET_MAX),
    Kind.SECONDS: _seconds,
    Kind.MODE: _one_of("a mode", MODES),
    Kind.NODE: _one_of("a kind of special file", NODES),
    Kind.XATTR_NAME: _xattr_name,
    Kind.XATTR_VALUE: _text("a value", XATTR_VALUE_BYTES_MAX, bytes_min=0),
    Kind.FLUSHES: _flushes,
    Kind.COMMAND: _text("a shell command", COMMAND_BYTES_MAX),
    Kind.LINE: _text("a line", LINE_BYTES_MAX, bytes_min=0),
}
