"""Folders for files that are soon removed: by the command that made them or, if it was killed, by a later one.

Whoever made a folder holds a lock on it, which ends with the process. A folder without its lock was left behind.
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
"""The names of these folders begin with this. No other folder of ours has such a name."""
YOUNG_S = 60
"""A new folder may be without its lock for this many seconds."""
_swept: set[Path] = set()


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent`, or where the machine has such folders. It is removed at the end."""
    folder = ScratchFolder(parent)
    try:
        yield folder.path
    finally:
        folder.remove()


class ScratchFolder:
    """A new folder. The first one that a process makes in a place removes those that were left behind there."""

    def __init__(self, parent: Path | None = None) -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        if place not in _swept:
            _swept.add(place)
            sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove it with all that is in it. This can be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def sweep(place: Path) -> None:
    """Remove the folders in `place` whose process is gone."""
    with suppress(OSError):
        for folder in place.glob(f"{PREFIX}*"):
            _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):  # it is someone else's, or was just removed
        if time.time() - folder.stat().st_mtime < YOUNG_S:
            return
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)
