"""The file system mounts, and everything in it can be read. The files of an aged base image are as they were.

No workload can name these files (docs/targets.md), so no other judge sees them. Their names and sizes are looked at,
and that there are blocks for all their bytes.

`usable` checks that it can be written to afterwards.
"""

from postcrash.checkers.checker import Checker, InShell
from postcrash.model import History, Observation
from postcrash.model.judge import CannotTellError, Opinion, Stage, holds, violated
from postcrash.model.observation import mount_error, shown_unread
from postcrash.model.tree import ROOT_PATH


class Mounts(Checker):
    """After a crash the file system mounts by itself and no name or byte in it gives an error."""

    name = "mounts"
    statement = "The file system mounts without help, and every name and every byte in it can be read."
    depends_on: tuple[str, ...] = ()
    needs: Stage = "boot"
    in_shell = InShell("mount", "it mounts", "it does not")

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The error of the mount, a directory, an inode or a file's data, or damage to a file of an aged image.

        Raises `CannotTellError` if nobody tried to read the tree.
        """
        if error := mount_error(observation):
            return violated(error)
        if ROOT_PATH not in observation.tree:
            raise CannotTellError("the tree was not looked at")
        unread = observation.tree.unread
        if unread:
            return violated(shown_unread(unread), unread.path)
        return violated(f"of the files that aged the image, {observation.aged}") if observation.aged else holds()
