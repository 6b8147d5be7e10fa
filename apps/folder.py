"""The folder that an application finds after a crash: a recovered tree with the bytes of its files, as an archive."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from postcrash.model import Entry, Segment, Tree, runs
from postcrash.model.segments import BYTES
from postcrash.model.tree import ROOT_PATH

BYTES_MAX = 64 << 20
"""The most bytes that all files of a folder have together."""
_UNREADABLE = "\ufffd"
"""Stands in names for bytes that are not text (docs/formats.md)."""
_TYPES = {"dir": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE, "fifo": tarfile.FIFOTYPE}
"""Beside files. Sockets and devices are left out: no application keeps its data in one."""


class UnreadFolderError(ValueError):
    """A part of the tree could not be read, so the folder that the application would find is not known."""


@dataclass(frozen=True)
class Folder:
    """A folder as a tar archive. Folders that hold equal bytes under equal names are equal."""

    archive: bytes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the archive."""
        return hashlib.sha256(self.archive).hexdigest()

    @classmethod
    def of(cls, tree: Tree) -> Self:
        """The folder of a tree with contents byte by byte. Raises UnreadFolderError.

        Contents that are not settled are settled here, so it is called within a question of `every_answer`.
        """
        total = sum(entry.size for entry in tree.values() if entry.type == "file")
        if total > BYTES_MAX:
            raise UnreadFolderError(f"the files of a crash state have {total} bytes, more than {BYTES_MAX}")
        made = io.BytesIO()
        first: dict[int, str] = {}
        with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
            for entry in sorted(tree.values(), key=lambda entry: entry.path.split("/")):
                if entry.error:
                    raise UnreadFolderError(f"{entry.path} could not be read (errno {entry.error})")
                if entry.xattrs:
                    raise UnreadFolderError(f"{entry.path} has extended attributes, which a copy of it would not have")
                if _UNREADABLE in entry.path + entry.target:
                    raise UnreadFolderError(f"{entry.path!r} is a name that is not text, or leads to one")
                for info, content in _members(entry, first):
                    archive.addfile(info, io.BytesIO(content))
        return cls(made.getvalue())


def _members(entry: Entry, first: dict[int, str]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """The archive's member for an entry, if it has one. `first` are names of inodes that stand there already."""
    if entry.path == ROOT_PATH:
        return
    info = tarfile.TarInfo(entry.path)
    info.mode = entry.mode
    if entry.type == "file" and entry.inode in first:
        info.type, info.linkname = tarfile.LNKTYPE, first[entry.inode]
        yield info, b""
    elif entry.type == "file":
        first[entry.inode] = entry.path
        content = content_of(entry)
        info.size = len(content)
        yield info, content
    elif entry.type in _TYPES:
        info.type, info.linkname = _TYPES[entry.type], entry.target
        yield info, b""


def content_of(entry: Entry) -> bytes:
    """The bytes of a file whose tree has contents byte by byte. Raises UnreadFolderError."""
    return b"".join(_bytes_of(run, entry.path) for run in runs(entry, 0, entry.size))


def _bytes_of(run: Segment, path: str) -> bytes:
    if not run.source.startswith(BYTES):
        raise UnreadFolderError(f"{path}, bytes {run.start} to {run.end}, could not be read ({run.source})")
    return bytes.fromhex(run.source[len(BYTES) :])
