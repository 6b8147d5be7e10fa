"""A file system can be used after a crash: its files can be changed, deleted and written anew.

After recovery the agent appends to every file, makes and removes a name in every directory, deletes everything, makes a
directory with a file, and reads this file after mounting again (harness/guests/agent/src/usage.rs).

Not checked: a full disk before everything has been deleted, and what fsck says of the result.
"""

from postcrash.checkers.checker import Checker, NotInShell
from postcrash.model import History, Observation
from postcrash.model.judge import CannotTellError, Opinion, Stage, holds, violated
from postcrash.model.observation import error_name


class Usable(Checker):
    """Recovery leaves a file system that works."""

    name = "usable"
    statement = "After recovery every file and directory can be changed and deleted, and new ones are kept."
    depends_on: tuple[str, ...] = ()
    looks_at: tuple[str, ...] = ("use_after",)
    needs: Stage = "mount"
    in_shell = NotInShell("it changes and removes everything after recovery")

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first step that failed. Raises `CannotTellError` if the file system was not used."""
        used = observation.used
        if used is None:
            raise CannotTellError("the file system was not used after recovery")
        if not used.failed:
            return holds()
        return violated(f"use after recovery: {used.failed} failed with {error_name(used.errno)}")
