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
from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.inode_identity import never
from postcrash.checkers.inodes import Past, together
from postcrash.model import Entry, History, Observation
from postcrash.model.tree import MADE_BY_MKFS, ROOT_PATH


class NeverWritten:
    """Nothing appears that no operation made."""

    name = "never-written"
    statement = "Every name, type, size, target and attribute in the tree is one that an operation made."
    depends_on: tuple[str, ...] = ("started", "returned")
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first name that nothing made, or that stands for something that it never was."""
        known = candidates(history)
        for path, entry in observation.tree.items():
            if path not in MADE_BY_MKFS and (message := _message(known, path, entry)):
                return Objection(self.name, message, path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether there is a name that mkfs did not make."""
        return any(path not in MADE_BY_MKFS | {ROOT_PATH} for path in observation.tree.paths())


def _message(known: Candidates, path: str, entry: Entry) -> str:
    """What is wrong with what is found. Empty if it can be what the name can stand for."""
    ever = known.ever(path)
    message = _never(ever.values(), entry) if ever else f"{path} is there, but no operation made it"
    now = known.now(path)
    if message or len(now) == len(ever):
        return message
    if not now:
        return "" if known.is_gone(path) else f"{known.settled(path)}, but {path} is there; its directory never had it"
    message = _never(now.values(), entry)
    return f"{known.settled(path)}, but {path} is not what the name stands for since then: {message}" if message else ""


def _never(each: Collection[Past], entry: Entry) -> str:
    """What is found of `entry` that no inode with the name ever was. Empty if it can be one of them."""
    messages = []
    for past in each:
        message = never(past, entry)
        if not message:
            return ""
        messages.append(message)
    if whole := never(together(each), entry):
        return whole
    return f"{entry.path} is a mixture of what had this name: {'; as another, '.join(dict.fromkeys(messages))}"
