"""The judge of an audit: the application's own check, on every folder that it can find after a crash."""

import hashlib
import json
import time
from types import TracebackType
from typing import Self

from postcrash._core import Recording
from postcrash.apps import Application, CheckResult, Folder, Limits, Sandbox, SandboxError, UnreadFolderError
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.judges import Opinion
from postcrash.model import History, Observation, Verdict
from postcrash.model.operation import SAYS
from postcrash.model.tree import ROOT_PATH
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import Store
from postcrash.targets import RecoveryKind

NAME = "application"
ABOUT = "application"
"""In a recording's metadata: what is needed to judge once more."""


class ApplicationJudge:
    """Has the application recover in a copy of the folder, and asks its check. Use it in a `with` statement.

    Of folders that hold equal bytes, with equal acknowledgements, one is asked about. A check that failed is run anew
    each time, so that a violation which is confirmed has failed twice.
    """

    name = NAME
    depends_on = ("returned",)

    def __init__(self, application: Application, seconds: float | None = None) -> None:
        """`seconds`: how long all checks together may take; None is no limit."""
        self._application = application
        self._seconds, self._spent = seconds, 0.0
        self._sandbox = sandbox_of(application, application.check_seconds)
        self._passed: set[tuple[str, tuple[str, ...]]] = set()
        self._failed: set[tuple[str, tuple[str, ...]]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sandbox.close()

    @property
    def folders(self) -> int:
        """So many different folders and acknowledgements have been asked about."""
        return len(self._passed | self._failed)

    @property
    def version(self) -> str:
        """Digest of what is known of the application: not of the files that its commands read."""
        return hashlib.sha256(json.dumps(about(self._application)).encode()).hexdigest()

    def wants(self, recover: RecoveryKind) -> bool:
        """See `Judge`: recoveries that tell contents byte by byte."""
        return recover.walk and recover.bytes

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if observation.mount_errno or ROOT_PATH not in observation.tree:
            return Opinion(Verdict.UNDECIDED, False, f"a crash state does not mount (errno {observation.mount_errno})")
        if self._seconds is not None and self._spent > self._seconds:
            return Opinion(Verdict.UNDECIDED, False, f"the checks took more than {self._seconds:g} s", is_last=True)
        try:
            result = self._asked(Folder.of(observation.tree), acknowledged(history))
        except (UnreadFolderError, SandboxError) as error:
            return Opinion(Verdict.UNDECIDED, False, str(error))
        if result.status is None:
            seconds = self._application.check_seconds
            return Opinion(Verdict.UNDECIDED, True, f"the check did not end within {seconds} s, or was killed")
        if result.status == 0:
            return Opinion(Verdict.HOLDS, True, "")
        return Opinion(Verdict.VIOLATED, True, message_of(result))

    def _asked(self, folder: Folder, lines: tuple[str, ...]) -> CheckResult:
        key = folder.digest, lines
        if key in self._passed:
            return CheckResult(0, "")
        started = time.monotonic()
        result = self._sandbox.run(folder, self._application.check, lines)
        self._spent += time.monotonic() - started
        (self._passed if result.status == 0 else self._failed).add(key)
        return result


def sandbox_of(application: Application, seconds: int) -> Sandbox:
    """A sandbox that sees the application's files, in which a command may take so long. Raises InfrastructureError."""
    try:
        sandbox = Sandbox(Limits(seconds=seconds), application.visible)
        sandbox.probe()
    except SandboxError as error:
        raise InfrastructureError(str(error)) from error
    return sandbox


def acknowledged(history: History) -> tuple[str, ...]:
    """The lines that the application had said."""
    return tuple(operation.value for operation in history.returned_operations if operation.word == SAYS)


def message_of(result: CheckResult) -> str:
    """The first line that the check wrote, or its exit status."""
    line = next(filter(None, map(str.strip, result.output.splitlines())), "")
    return line[:500] or f"the check exits with {result.status}"


def about(application: Application) -> dict[str, object]:
    """What of an application its judge needs, as decoded JSON."""
    folders = {"folder": application.folder, "built": application.built}
    return {
        **{"name": application.name, "run": application.run, "check": application.check},
        **{name: str(path) for name, path in folders.items() if path is not None},
        "check_seconds": application.check_seconds,
    }


def judge_again(store: Store, finding: Finding) -> ApplicationJudge:
    """The judge that made a finding. UsageError where its recording does not say how."""
    recording = Recording(store.recording_path(state_below(finding) or finding.recording))
    told = json.loads(recording.metadata).get(ABOUT)
    if not isinstance(told, dict):
        raise UsageError(f"{finding.id}: its recording does not say which application it is of")
    return ApplicationJudge(Application(**told))
