"""Bundles as files: a tar in gzip, written so that equal content gives equal bytes, and read as what a stranger made.

Reading goes through the file once. Nothing is written to the disk by its name in the archive. Only the plainest tar is
read: regular files whose names are expected, each at most once and no larger than expected, and nothing else.
"""

import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO

from postcrash.harness.errors import UsageError

FILE_BYTES_MAX = 256 << 20
_BLOCK = tarfile.BLOCKSIZE
_CHUNK_BYTES = 1 << 16
_END = bytes(_BLOCK)
_PADDING_BYTES_MAX = tarfile.RECORDSIZE


class BundleError(UsageError):
    """A file is no bundle, or a bundle that is not taken. The text names the file and says what is wrong with it."""


def write_archive(out: BinaryIO, members: Iterable[tuple[str, int, BinaryIO]]) -> None:
    """Write an archive of `members`: name, size in bytes, and content. No time or user of this machine goes into it."""
    with (
        GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, size, content in members:
            about = tarfile.TarInfo(name)
            about.size = size
            archive.addfile(about, content)


def read_archive(path: Path, sizes: Mapping[str, int]) -> Iterator["Member"]:
    """The members of an archive, one after the other. What was not read of a member is skipped when the next is asked.

    `sizes` are the names that are allowed, with the most bytes that each may have. Raises BundleError.
    """
    try:
        if not path.is_file():
            raise BundleError(f"{path}: it is not a file")
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BundleError(f"{path}: a bundle has at most {FILE_BYTES_MAX} bytes")
        with path.open("rb") as file:
            yield from _members(_UnpackedFile(path, file), sizes)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror or error}") from error


class Member:
    """A member that is being read."""

    def __init__(self, name: str, size: int, source: "_UnpackedFile") -> None:
        self.name, self.size = name, size
        self._source, self._left = source, size

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, and none at its end. Raises BundleError."""
        data = self._source.exactly(min(size, self._left))
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Go to the end of its last block."""
        while self.read(_CHUNK_BYTES):
            pass
        self._source.exactly(-self.size % _BLOCK)


class _UnpackedFile:
    """The content of a gzip file with one member. No more than what is asked for is unpacked."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._input = b""

    def error(self, reason: str) -> BundleError:
        return BundleError(f"{self._path}: it is no bundle, or damaged: {reason}")

    def exactly(self, size: int) -> bytes:
        """The next `size` bytes."""
        parts, missing = [], size
        while missing:
            part = self.some(missing)
            if not part:
                raise self.error("it is cut short")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def some(self, size: int) -> bytes:
        """At most `size` bytes, and none at the end of the file."""
        while not self._inflater.eof:
            try:
                data = self._inflater.decompress(self._input, size)
            except zlib.error as error:
                raise self.error(str(error)) from None
            self._input = self._inflater.unconsumed_tail
            if data:
                return data
            if not self._input and not self._inflater.eof:
                self._input = self._file.read(_CHUNK_BYTES)
                if not self._input:
                    raise self.error("it is cut short")
        if self._inflater.unused_data or self._file.read(1):
            raise self.error("there is more after its end")
        return b""


def _members(source: _UnpackedFile, sizes: Mapping[str, int]) -> Iterator[Member]:
    seen: set[str] = set()
    while (header := source.exactly(_BLOCK)) != _END:
        member = _member(header, source, sizes)
        if member.name in seen:
            raise source.error(f"{member.name} is in it twice")
        seen.add(member.name)
        yield member
        member.skip()
    padding = 0
    while rest := source.some(_CHUNK_BYTES):
        padding += len(rest)
        if any(rest) or padding > _PADDING_BYTES_MAX:
            raise source.error("there is more after its end")


def _member(header: bytes, source: _UnpackedFile, sizes: Mapping[str, int]) -> Member:
    try:
        about = tarfile.TarInfo.frombuf(header, "ascii", "backslashreplace")
    except (tarfile.TarError, ValueError) as error:
        raise source.error(str(error)) from None
    if about.name not in sizes:
        raise source.error(f"it has a member {about.name!r}, and may have {', '.join(sizes)}")
    if about.type != tarfile.REGTYPE:
        raise source.error(f"{about.name} is not a regular file")
    if not 0 <= about.size <= sizes[about.name]:
        raise source.error(f"{about.name} has {about.size} bytes, and may have {sizes[about.name]}")
    return Member(about.name, about.size, source)
