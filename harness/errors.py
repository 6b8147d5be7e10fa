"""What ends a command early, with the exit code that says so."""

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


class UsageError(HarnessError):
    """The user can mend it: an unknown name, a broken file."""

    exit_code = ExitCode.USAGE


class RefusedError(UsageError):
    """A file system refused an operation of a workload."""


class NothingSelectedError(HarnessError):
    """What was asked for selects nothing."""

    exit_code = ExitCode.NOTHING_SELECTED
