"""Judges of one crash state: it mounts, is clean, holds what was promised and nothing that never was, and can be used.

Checkers expect the same of every workload. `postcrash.properties` judges what a workload was made to show. A new
checker is one file with a subclass of `Checker`, and one line here.
"""

from postcrash.checkers.boot_repair import BootRepair
from postcrash.checkers.checker import Checker
from postcrash.checkers.durability import Durability
from postcrash.checkers.foreign_bytes import ForeignBytes
from postcrash.checkers.fsck import Fsck
from postcrash.checkers.fsync_names import FsyncNames
from postcrash.checkers.in_place import InPlace
from postcrash.checkers.kernel_log import KernelLog
from postcrash.checkers.link_counts import LinkCounts
from postcrash.checkers.mounts import Mounts
from postcrash.checkers.never_written import NeverWritten
from postcrash.checkers.null_files import NullFiles
from postcrash.checkers.one_name import OneName
from postcrash.checkers.removed_names import RemovedNames
from postcrash.checkers.untorn import Untorn
from postcrash.checkers.usable import Usable

CHECKERS: tuple[Checker, ...] = (
    Mounts(),
    KernelLog(),
    Fsck(),
    BootRepair(),
    Durability(),
    NeverWritten(),
    ForeignBytes(),
    Untorn(),
    LinkCounts(),
    Usable(),
)
"""The checkers whose expectations documents state, in the order of the tables."""
PRACTICE: tuple[Checker, ...] = (FsyncNames(), RemovedNames(), OneName(), InPlace(), NullFiles())
"""The checkers of what file systems are expected to do in practice (properties/practice.toml)."""

__all__ = ["CHECKERS", "PRACTICE", "Checker"]
