"""No file shows bytes that were not written to it, such as those of free space or of another file.

Every write has bytes of its own, and free space is filled before the file system is made (docs/formats.md, "Bytes"). So
the origin of a byte is known. Zeros belong to no one. Bytes of unknown origin, such as metadata that was there before,
are foreign too. If several files had the name, what is found is one of them: all of the bytes must have been in one
file, which also had this size and these attributes. A file that lost the name for good is none of them: the directory
was made durable without it.

Not checked: bytes that cannot be read (`mounts` checks these), and names that no operation made (`never-written`).
"""

from collections.abc import Collection

from postcrash.checkers.candidates import Candidates, candidates
from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.inode_identity import foreign, never
from postcrash.checkers.inodes import Past, together
from postcrash.model import Entry, History, Observation, Workload
from postcrash.properties.wording import shown_bytes


class ForeignBytes:
    """A file has its own bytes."""

    name = "foreign-bytes"
    statement = "Every byte in a file is zero, or was written to that file at that place."
    depends_on: tuple[str, ...] = ("started", "returned")
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first file with a byte that was never written to it at that place, from free space or elsewhere."""
        known = candidates(history)
        for path, entry in observation.tree.items():
            if message := _message(history.workload, known, path, entry):
                return Objection(self.name, message, path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether there is a file with bytes, under a name that an operation made."""
        known = candidates(history)
        return any(entry.type == "file" and entry.size and known.ever(path) for path, entry in observation.tree.items())


def _message(workload: Workload, known: Candidates, path: str, entry: Entry) -> str:
    """What is foreign of what is found. Empty if it can be what the name can stand for, or if nothing made the name."""
    if not (ever := known.ever(path)):
        return ""
    message, now = _foreign(workload, ever.values(), entry), known.now(path)
    if message or len(now) == len(ever):
        return message
    alike = [past for past in now.values() if not never(past, entry)]
    if not alike or any(foreign(past, entry) is None for past in alike):
        return ""
    found = shown_bytes(workload, path, entry, 0, entry.size)
    return f"{known.settled(path)}, but {found}; what the name stands for since then never had all of them"


def _foreign(workload: Workload, each: Collection[Past], entry: Entry) -> str:
    """What no inode ever had of the bytes that are found. Empty if one of `each` can be what is found.

    An inode that was never of this type or size, or never had these attributes, is not what is found. If that is true
    of all, `never-written` objects.
    """
    alike = [past for past in each if len(each) == 1 or not never(past, entry)] or each
    if any(foreign(past, entry) is None for past in alike):
        return ""
    if stretch := foreign(together(each), entry):
        return f"{shown_bytes(workload, entry.path, entry, *stretch)}; no operation put all of them there"
    found = shown_bytes(workload, entry.path, entry, 0, entry.size)
    return f"{found}; several files had this name, but none ever had all these bytes with this size and attributes"
