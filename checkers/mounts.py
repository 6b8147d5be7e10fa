"""The file system mounts, and all of it can be read.

That it can be written to afterwards is for `usable`.
"""

import errno
import os

from postcrash.checkers.checker import Finding
from postcrash.model import Entry, History, Observation


class Mounts:
    """After a crash the file system mounts by itself and no name or byte in it gives an error."""

    name = "mounts"
    statement = "The file system mounts without help, and every name and every byte in it can be read."

    def check(self, history: History, observation: Observation) -> Finding | None:
        """What the mount, a directory, an inode or a file's data failed with."""
        if observation.mount_errno:
            return Finding(self.name, f"mount failed with {_named(observation.mount_errno)}")
        for path, entry in observation.tree.items():
            message = _unreadable(entry)
            if message:
                return Finding(self.name, f"{path} {message}", path)
        return None


def _unreadable(entry: Entry) -> str:
    if entry.error:
        return f"cannot be read: {_named(entry.error)}"
    for segment in entry.segments:
        kind, _, number = segment.source.partition(":")
        if kind == "error":
            return f"cannot be read from byte {segment.start} to {segment.end}: {_named(int(number))}"
    return ""


def _named(number: int) -> str:
    return f"{errno.errorcode.get(number, f'errno {number}')} ({os.strerror(number)})"
