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
from postcrash.checkers.checker import Checker
from postcrash.checkers.inode_identity import foreign_range, mismatch
from postcrash.checkers.inodes import Past, union
from postcrash.model import Entry, History, Observation, Workload
from postcrash.model.judge import Opinion, holds, violated
from postcrash.properties.wording import shown_bytes


class ForeignBytes(Checker):
    """A file has its own bytes."""

    name = "foreign-bytes"
    statement = "Every byte in a file is zero, or was written to that file at that place."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first file with a byte that was never written to it at that place, from free space or elsewhere."""
        known = candidates(history)
        for path, entry in observation.tree.items():
            if message := _message(history.workload, known, path, entry):
                return violated(message, path)
        files = (path for path, entry in observation.tree.items() if entry.type == "file" and entry.size)
        return holds(relevant=any(map(known.ever, files)))


def _message(workload: Workload, known: Candidates, path: str, entry: Entry) -> str:
    """Which bytes of `entry` are foreign. Empty if none are, or if no operation made the name."""
    if not (ever := known.ever(path)):
        return ""
    message, now = _foreign(workload, ever.values(), entry), known.now(path)
    if message or len(now) == len(ever):
        return message
    alike = [past for past in now.values() if not mismatch(past, entry)]
    if not alike or any(foreign_range(past, entry) is None for past in alike):
        return ""
    found = shown_bytes(workload, path, entry, 0, entry.size)
    return f"{known.settled(path)}, but {found}; what the name stands for since then never had all of them"


def _foreign(workload: Workload, pasts: Collection[Past], entry: Entry) -> str:
    """Which bytes no inode ever had. Empty if one of the inodes can be `entry`.

    Inodes that never had this type, size and attributes are left out. If that leaves none, `never-written` reports it.
    """
    alike = [past for past in pasts if len(pasts) == 1 or not mismatch(past, entry)] or pasts
    if any(foreign_range(past, entry) is None for past in alike):
        return ""
    if stretch := foreign_range(union(pasts), entry):
        return f"{shown_bytes(workload, entry.path, entry, *stretch)}; no operation put all of them there"
    found = shown_bytes(workload, entry.path, entry, 0, entry.size)
    return f"{found}; several files had this name, but none ever had all these bytes with this size and attributes"
