"""Temporary folders, removed by the command that made them or, if it was killed, by a later one.

A process holds a lock on each of its folders until it ends. A folder without a lock is abandoned.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "postcrash."
"""Prefix of the names of these folders, and of no others."""
YOUNG_S = 60
"""A new folder may be without its lock for this many seconds."""
_swept: set[Path] = set()


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """Makes a folder in `parent`, or in the machine's folder for temporary files, and removes it in the end."""
    folder = ScratchFolder(parent)
    try:
        yield folder.path
    finally:
        folder.remove()


class ScratchFolder:
    """A new folder. The first one that a process makes in a place removes abandoned ones there."""

    def __init__(self, parent: Path | None = None) -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        if place not in _swept:
            _swept.add(place)
            sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Removes the folder with its content. It can be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def sweep(place: Path) -> None:
    """Removes the folders in `place` whose process has ended."""
    with suppress(OSError):
        for folder in place.glob(f"{PREFIX}*"):
            _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    with suppress(OSError):  # it is someone else's, or was just removed
        if time.time() - folder.stat().st_mtime < YOUNG_S:
            return
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)
