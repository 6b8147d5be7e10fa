"""Nothing appears that never existed.

A name must be one that some operation, started before the crash, made in that directory. What is behind the name must
have been so at some time: its type, a size no larger than its largest, its target if it is a symbolic link, and its
extended attributes with their values. If several things had the name, one of them must have been all of this. Something
that lost the name for good is none of them: the directory was made durable without it.

Not checked: bytes, which `foreign-bytes` checks; permission bits, which vfat makes up; attributes outside the user
namespace (SELinux sets its own); entries that cannot be read, which `mounts` checks; what mkfs makes.
"""

from collections.abc import Collection

from postcrash.checkers.candidates import Candidates, candidates
from postcrash.checkers.checker import Checker
from postcrash.checkers.inode_identity import mismatch
from postcrash.checkers.inodes import Past, union
from postcrash.model import Entry, History, Observation
from postcrash.model.judge import Opinion, holds, violated
from postcrash.model.tree import MADE_BY_MKFS, ROOT_PATH


class NeverWritten(Checker):
    """Nothing appears that no operation made."""

    name = "never-written"
    statement = "Every name, type, size, target and attribute in the tree is one that an operation made."

    def examine(self, history: History, observation: Observation) -> Opinion:
        """The first name that nothing made, or that stands for something that it never was."""
        known = candidates(history)
        for path, entry in observation.tree.items():
            if path not in MADE_BY_MKFS and (message := _message(known, path, entry)):
                return violated(message, path)
        return holds(relevant=any(path not in MADE_BY_MKFS | {ROOT_PATH} for path in observation.tree.paths()))


def _message(known: Candidates, path: str, entry: Entry) -> str:
    """Why the name cannot stand for `entry`. Empty if it can."""
    ever = known.ever(path)
    message = _mismatch(ever.values(), entry) if ever else f"{path} is there, but no operation made it"
    now = known.now(path)
    if message or len(now) == len(ever):
        return message
    if not now:
        return "" if known.is_gone(path) else f"{known.settled(path)}, but {path} is there; its directory never had it"
    message = _mismatch(now.values(), entry)
    return f"{known.settled(path)}, but {path} is not what the name stands for since then: {message}" if message else ""


def _mismatch(pasts: Collection[Past], entry: Entry) -> str:
    """Why `entry` is none of the inodes. Empty if it can be one of them."""
    messages = []
    for past in pasts:
        message = mismatch(past, entry)
        if not message:
            return ""
        messages.append(message)
    if whole := mismatch(union(pasts), entry):
        return whole
    return f"{entry.path} is a mixture of what had this name: {'; as another, '.join(dict.fromkeys(messages))}"
