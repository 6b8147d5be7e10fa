"""Reads and writes bundle files: reproducible tar archives in gzip, which come from strangers when they are read.

A file is read in one pass. Names in the archive are never names on the disk. Only plain archives are accepted: regular
files with expected names, each at most once and no larger than expected.
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
    """A file is no bundle, or a bundle that is refused. The text names the file and the reason."""


def write_archive(out: BinaryIO, members: Iterable[tuple[str, int, BinaryIO]]) -> None:
    """Writes an archive of `members`: name, size in bytes, and content. It has no times and no user names."""
    with (
        GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, size, content in members:
            info = tarfile.TarInfo(name)
            info.size = size
            archive.addfile(info, content)


def read_archive(path: Path, sizes: Mapping[str, int]) -> Iterator["Member"]:
    """Yields the members of an archive. The unread rest of a member is skipped when the next one is requested.

    `sizes` are the allowed names with the most bytes of each. Raises BundleError.
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
        """Skips to the end of its last block."""
        while self.read(_CHUNK_BYTES):
            pass
        self._source.exactly(-self.size % _BLOCK)


class _UnpackedFile:
    """The content of a gzip file with one member. It unpacks no more than is requested."""

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
    names: set[str] = set()
    while (header := source.exactly(_BLOCK)) != _END:
        member = _member(header, source, sizes)
        if member.name in names:
            raise source.error(f"{member.name} is in it twice")
        names.add(member.name)
        yield member
        member.skip()
    padding = 0
    while rest := source.some(_CHUNK_BYTES):
        padding += len(rest)
        if any(rest) or padding > _PADDING_BYTES_MAX:
            raise source.error("there is more after its end")


def _member(header: bytes, source: _UnpackedFile, sizes: Mapping[str, int]) -> Member:
    try:
        info = tarfile.TarInfo.frombuf(header, "ascii", "backslashreplace")
    except (tarfile.TarError, ValueError) as error:
        raise source.error(str(error)) from None
    if info.name not in sizes:
        raise source.error(f"it has a member {info.name!r}, and may have {', '.join(sizes)}")
    if info.type != tarfile.REGTYPE:
        raise source.error(f"{info.name} is not a regular file")
    if not 0 <= info.size <= sizes[info.name]:
        raise source.error(f"{info.name} has {info.size} bytes, and may have {sizes[info.name]}")
    return Member(info.name, info.size, source)
