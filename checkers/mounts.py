"""The file system mounts, and everything in it can be read. The files of an aged base image are as they were.

No workload can name these files (docs/targets.md), so no other judge sees them. Their names and sizes are looked at,
and that there are blocks for all their bytes.

`usable` checks that it can be written to afterwards.
"""

from postcrash.checkers.checker import CannotTellError, InShell, Objection, Stage
from postcrash.model import History, Observation
from postcrash.model.observation import error_name, mount_error
from postcrash.model.tree import ROOT_PATH, Unread


class Mounts:
    """After a crash the file system mounts by itself and no name or byte in it gives an error."""

    name = "mounts"
    statement = "The file system mounts without help, and every name and every byte in it can be read."
    depends_on: tuple[str, ...] = ()
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "boot"
    in_shell = InShell("mount", "it mounts", "it does not")

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The error of the mount, a directory, an inode or a file's data, or damage to a file of an aged image.

        Raises `CannotTellError` if nobody tried to read the tree.
        """
        if error := mount_error(observation):
            return Objection(self.name, error)
        if ROOT_PATH not in observation.tree:
            raise CannotTellError("the tree was not looked at")
        unread = observation.tree.unread
        if unread:
            return Objection(self.name, shown_unread(unread), unread.path)
        return (
            Objection(self.name, f"of the files that aged the image, {observation.aged}") if observation.aged else None
        )

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Every crash state can break this."""
        return True


def shown_unread(unread: Unread) -> str:
    """For messages: `a cannot be read: EIO (Input/output error)`."""
    place = f" from byte {unread.start} to {unread.end}" if unread.end else ""
    return f"{unread.path} cannot be read{place}: {error_name(unread.errno)}"
