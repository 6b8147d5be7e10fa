"""What ends a command early, with the exit code that says so."""

from dataclasses import dataclass
from errno import EINVAL, ENOSYS, EOPNOTSUPP, EPERM

from postcrash.harness.wire import Message
from postcrash.model import ExitCode
from postcrash.reports.consoles import Casualty


class HarnessError(Exception):
    """One clear sentence for the user; `exit_code` is the process's."""

    exit_code = ExitCode.INFRASTRUCTURE

    def __init__(self, message: str, evidence: str = "") -> None:
        super().__init__(message)
        self.evidence = evidence
        """What a developer wants to see besides: the end of a guest's console, say."""


class InfrastructureError(HarnessError):
    """Our own machinery failed: a guest that does not boot, a program that is missing, a full disk."""


class BootError(InfrastructureError):
    """A guest does not come up. The evidence is its console."""


class RecordersDisagreeError(InfrastructureError):
    """What two recorders saw of a workload cannot be of one run, however often it is run."""


class CrashDiskEndedError(InfrastructureError):
    """A machine's crash disk has ended though nobody asked it to. Its guest has ended with it."""


class GuestLostError(InfrastructureError):
    """Two guests were lost over the same, one after the other."""

    def __init__(self, lost: "LostAtWork") -> None:
        super().__init__(lost.what, lost.console)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class LostAtWork(Message):
    """How a guest was lost, but for guests lost over crash states that are explored.

    during   "run" of a workload, "trust": recovery of the base image, "recovery" of a crash state that is recorded
    what     as in `Casualty`, and so console and stacks
    started  operations (set-up included) that had been started, and returned: those that had returned
    """

    during: str
    what: str
    console: str
    stacks: str
    started: int
    returned: int

    @property
    def casualty(self) -> Casualty:
        """Without what it did."""
        return Casualty(self.what, self.console, self.stacks)


class UsageError(HarnessError):
    """The user can mend it: an unknown name, a broken file."""

    exit_code = ExitCode.USAGE


class OperationFailedError(UsageError):
    """An operation of a workload failed in the guest, though nothing in the workload says that it must."""

    def __init__(self, message: str, operation: str, errno: int) -> None:
        super().__init__(message)
        self.operation = operation
        """The word of the `.ops` language, with the mode of a fallocate."""
        self.errno = errno

    @property
    def is_unsupported(self) -> bool:
        """Whether the kernel answered as it does where a file system lacks an operation."""
        return self.errno in (EPERM, EINVAL, ENOSYS, EOPNOTSUPP)


class NothingSelectedError(HarnessError):
    """What was asked for selects nothing."""

    exit_code = ExitCode.NOTHING_SELECTED
