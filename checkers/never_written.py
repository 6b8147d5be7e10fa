"""Nothing appears that never existed.

A name must be one that some operation, started before the crash, made in that directory. What is behind the name must
have been so at some time: its type, a size no larger than its largest, its target if it is a symbolic link, and its
extended attributes with their values.

Not checked: bytes, which `foreign-bytes` checks; permission bits, which vfat makes up; attributes outside the user
namespace (SELinux sets its own); entries that cannot be read, which `mounts` checks; what mkfs makes.
"""

from postcrash.checkers.checker import TREE_IN_SHELL, Objection, Stage
from postcrash.checkers.inodes import Past, pasts
from postcrash.model import Entry, History, Observation
from postcrash.model.simulate import DEVICES
from postcrash.model.tree import ROOT_PATH

MADE_BY_MKFS = frozenset({"lost+found"})
"""Names in the root directory that mke2fs(8) and mkfs.f2fs(8) put there."""


class NeverWritten:
    """Nothing appears that no operation made."""

    name = "never-written"
    statement = "Every name, type, size, target and attribute in the tree is one that an operation made."
    depends_on: tuple[str, ...] = ("started",)
    looks_at: tuple[str, ...] = ("walk",)
    needs: Stage = "tree"
    in_shell = TREE_IN_SHELL

    def check(self, history: History, observation: Observation) -> Objection | None:
        """The first name that nothing made, or that stands for something that it never was."""
        known = pasts(history)
        for path, entry in observation.tree.items():
            if path in MADE_BY_MKFS:
                continue
            past = known.of(path)
            message = _never(entry, past) if past else f"{path} is there, but no operation made it"
            if message:
                return Objection(self.name, message, path)
        return None

    def is_relevant(self, history: History, observation: Observation) -> bool:
        """Whether there is a name that mkfs did not make."""
        return any(path not in MADE_BY_MKFS | {ROOT_PATH} for path in observation.tree.paths())


def _never(entry: Entry, past: Past) -> str:
    """What is found of `entry` that it never was. Empty if there is nothing, or if the entry could not be read."""
    if entry.error:
        return ""
    if entry.type not in past.types:
        return f"{entry.path} is a {entry.type}, which it never was"
    if entry.size > past.size:
        return f"{entry.path} is {entry.size} bytes long, but it never had more than {past.size}"
    if entry.type == "symlink" and entry.target not in past.targets:
        return f"{entry.path} points to {entry.target!r}, but no operation made it point there"
    if entry.type in DEVICES and entry.target not in past.targets:
        return f"{entry.path} is the {entry.type} device {entry.target}, but no operation made that"
    for name, value in entry.xattrs:
        if name.startswith("user.") and (name, value) not in past.xattrs:
            return f"attribute {name} of {entry.path} is {bytes.fromhex(value)!r}, but no operation set it so"
    return ""
