"""What ends a command early, with the exit code that says so."""

from errno import EINVAL, ENOSYS, EOPNOTSUPP, EPERM

from postcrash.model import ExitCode


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
