"""The disk of a recording as a file, for tools that read file systems."""

import os
import tempfile
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from postcrash._core import Recording
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES

IMAGE_BYTES_MAX = 4 << 30
_CHUNK_BYTES = 1 << 20


class ImageTooLargeError(RuntimeError):
    """The disk is too large to be copied for an explanation."""


class DiskImage:
    """A copy of the base image with the writes of a recording, all kept. The end of the `with` statement removes it.

    At first it has the writes submitted before the event `until`. `finish` adds the others.
    """

    def __init__(self, recording: Recording, base_path: str | PathLike[str], until: int) -> None:
        """Raises `ImageTooLargeError` and `OSError`."""
        self._recording, self._events = recording, recording.events()
        self._next = 0
        self._folder = tempfile.TemporaryDirectory(prefix="postcrash-disk-")
        self.path = str(Path(self._folder.name, "disk.img"))
        try:
            with open(base_path, "rb") as base:
                size = base.seek(0, os.SEEK_END)
                if size > IMAGE_BYTES_MAX:
                    raise ImageTooLargeError(f"the disk has {size} bytes; at most {IMAGE_BYTES_MAX} are looked at")
                self._file = open(self.path, "x+b")  # noqa: SIM115
                _copy(base.fileno(), self._file.fileno(), size)
            self._apply(until)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._folder.cleanup()

    def finish(self) -> None:
        """Adds the writes up to the end of the recording."""
        self._apply(len(self._events))

    def read(self, start: int, length: int) -> bytes:
        """Returns `length` bytes from `start`."""
        return os.pread(self._file.fileno(), length, start)

    def _apply(self, until: int) -> None:
        for index in range(self._next, until):
            match self._events[index]:
                case ("write", _, sector, *_):
                    os.pwrite(self._file.fileno(), self._recording.data(index), sector * SECTOR_BYTES)
                case ("zero", _, sector, sectors, _):
                    end = (sector + sectors) * SECTOR_BYTES
                    for start in range(sector * SECTOR_BYTES, end, _CHUNK_BYTES):
                        os.pwrite(self._file.fileno(), bytes(min(_CHUNK_BYTES, end - start)), start)
        self._next = max(self._next, until)


def _copy(source: int, target: int, size: int) -> None:
    """Copies `size` bytes except the free space. Base images are filled there with words that begin with `stale`."""
    os.ftruncate(target, size)
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError:  # there is only a hole
            return
        end = os.lseek(source, start, os.SEEK_HOLE)
        for at in range(start, end, BLOCK_BYTES):
            block = os.pread(source, min(BLOCK_BYTES, end - at), at)
            if not block.startswith(b"stale"):
                os.pwrite(target, block, at)
