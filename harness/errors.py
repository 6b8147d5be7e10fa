"""Errors that end a command early, with their exit codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from errno import EINVAL, ENODEV, ENOSYS, EOPNOTSUPP, EPERM, errorcode

from postcrash.harness.wire import Message
from postcrash.model import ExitCode
from postcrash.model.operation import Variant
from postcrash.store.consoles import Casualty

_UNSUPPORTED = {
    **dict.fromkeys(("link", "symlink", "mknod", "mkdir"), EPERM),
    **dict.fromkeys(("exchange", "dwrite", "dwrite-osync", "awrite", "awrite-odsync", "reflink", "dedupe"), EINVAL),
    **dict.fromkeys(("fallocate collapse-range", "fallocate insert-range"), EINVAL),
    "truncate": EPERM,
    "mmapwrite": ENODEV,
}
"""Errors of operations that a file system does not support, besides ENOSYS and EOPNOTSUPP: link(2), symlink(2),
mknod(2), mkdir(2), rename(2), open(2) of O_DIRECT, readv(2) of RWF_ATOMIC, ioctl_ficlonerange(2),
ioctl_fideduperange(2), fallocate(2) of blocks that are larger than ours, truncate(2), mmap(2)."""


def is_unsupported(operation: str, errno: int) -> bool:
    """Whether a kernel returns `errno` for this operation (word and mode) on a file system that does not support it."""
    return errno in (ENOSYS, EOPNOTSUPP) or _UNSUPPORTED.get(operation) == errno


def errno_name(errno: int) -> str:
    """For messages: `EPERM`. Linux has one number for EOPNOTSUPP and ENOTSUP, and its manual pages say EOPNOTSUPP."""
    return "EOPNOTSUPP" if errno == EOPNOTSUPP else errorcode.get(errno, f"errno {errno}")


class HarnessError(Exception):
    """An error with one clear sentence for the user. `exit_code` is the exit code of the process."""

    exit_code = ExitCode.INFRASTRUCTURE

    def __init__(self, message: str, evidence: str = "") -> None:
        super().__init__(message)
        self.evidence = evidence
        """More for developers, for example the end of a guest's console."""


class InfrastructureError(HarnessError):
    """Our own machinery failed: a guest that does not boot, a program that is missing, a full disk."""


class BootError(InfrastructureError):
    """A guest does not come up. The evidence is its console."""


class RecordersDisagreeError(InfrastructureError):
    """Two recorders do not agree on a run of a workload, however often it is run."""


class CrashDiskEndedError(InfrastructureError):
    """A machine's crash disk ended unexpectedly, and its guest with it."""


class GuestLostError(InfrastructureError):
    """Two guests in a row were lost while they did the same thing."""

    def __init__(self, lost: "LostAtWork") -> None:
        super().__init__(lost.what, lost.console)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class LostAtWork(Message):
    """How a guest was lost outside of an exploration of crash states.

    during    "run": of a workload; "trust": recovery of the base image; "recovery": of a crash state that is recorded
    what      as in `Casualty`; console and stacks too
    started   the number of operations (set-up included) that had started
    returned  the number of these that had returned
    """

    during: str
    what: str
    console: str
    stacks: str
    started: int
    returned: int

    @property
    def casualty(self) -> Casualty:
        """The loss of the guest, without what it did."""
        return Casualty(self.what, self.console, self.stacks)


class UsageError(HarnessError):
    """An error that the user can fix: an unknown name, a broken file."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, others: Sequence[str] = (), evidence: str = "") -> None:
        super().__init__(message, evidence)
        self.others = tuple(others)
        """Further errors, a line each."""


class OperationFailedError(UsageError):
    """An operation of a workload failed unexpectedly in the guest."""

    def __init__(self, message: str, operation: str, errno: int, number: int = 0, *, evidence: str = "") -> None:
        super().__init__(message, evidence=evidence)
        self.operation = operation
        """The word of the `.ops` language, with the mode of a fallocate."""
        self.errno = errno
        self.number = number
        """The number of the operation in its workload."""
        self.variant: Variant = ()
        """The operation without names (`Operation.variant`)."""
        self.unlike = ""
        """What the reference of a comparison does instead; empty if it does the same, or there is none."""

    @property
    def is_unsupported(self) -> bool:
        """See the function `is_unsupported`."""
        return is_unsupported(self.operation, self.errno)


class NothingSelectedError(HarnessError):
    """The options of a command select nothing."""

    exit_code = ExitCode.NOTHING_SELECTED
