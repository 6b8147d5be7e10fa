"""The judge of an audit: the application's own check of every folder that a crash can leave."""

import hashlib
import json
import os
import shlex
from typing import Self

from postcrash.apps import CHECK_LIMITS, Application, CheckResult, Folder, Limits, Sandbox, SandboxError
from postcrash.harness.auditing.application_lookup import catalogued, require_built, require_installed
from postcrash.harness.auditing.folder_judge import FolderJudge
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination.recording_metadata import provenance
from postcrash.model import History
from postcrash.model.text import visible
from postcrash.store.records import Finding
from postcrash.store.store import Store

CHECKS_AT_ONCE = 3 * (os.cpu_count() or 1)
"""The kernel waits while it makes and removes a sandbox, so more checks than there are CPUs keep them busy."""
ABOUT, ACKNOWLEDGED, TEST = "application", "acknowledged", "test"
"""Fields of a recording's metadata that describe an audit (`Provenance`)."""


class ApplicationJudge(FolderJudge):
    """Runs the application's recovery and check in a copy of the folder. Use it in a `with` statement."""

    def __init__(
        self,
        application: Application,
        seconds: float | None = None,
        *,
        keeps: bool = False,
        acknowledged: tuple[str, ...] | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """`seconds`: how long all checks together may take; None is no limit. `keeps` as in `FolderJudge`.

        `acknowledged`: what had been acknowledged before, whatever is said now; None: what is said counts. `sandbox`:
        one of `sandbox_of` that somebody else closes; None: its own.
        """
        super().__init__(seconds, keeps=keeps)
        self._application, self.before, self._is_own = application, acknowledged, sandbox is None
        self._sandbox = sandbox or sandbox_of(application)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_own:
            self._sandbox.close()

    @property
    def version(self) -> str:
        """Digest of what is known of the application, without the files that its commands read."""
        return hashlib.sha256(json.dumps([about(self._application), self.before]).encode()).hexdigest()

    @property
    def no_answer(self) -> str:
        """See `FolderJudge`."""
        return f"the check did not end within {self._application.check_seconds} s, or was killed"

    def ask(self, folder: Folder, acknowledged: tuple[str, ...]) -> CheckResult:
        """See `FolderJudge`."""
        return self._sandbox.run(folder, self._application.check, acknowledged)

    def acknowledged(self, history: History) -> tuple[str, ...]:
        """See `FolderJudge`."""
        return super().acknowledged(history) if self.before is None else self.before


def sandbox_of(application: Application, seconds: int | None = None) -> Sandbox:
    """A sandbox that sees the application's files, with the limits of its check. Raises InfrastructureError.

    With `seconds`, a command in it may take so long instead.
    """
    seconds = application.check_seconds if seconds is None else seconds
    limits = Limits(
        seconds, application.check_memory_mib, application.check_disk_mib, sockets=application.check_sockets
    )
    try:
        sandbox = Sandbox(limits, application.visible)
        sandbox.probe()
    except SandboxError as error:
        raise InfrastructureError(str(error)) from error
    return sandbox


def about(application: Application) -> dict[str, object]:
    """The part of an application that the judge depends on, as decoded JSON."""
    folders = {"folder": application.folder, "built": application.built}
    return {
        "name": application.name,
        "run": application.run,
        "check": application.check,
        **{name: str(path) for name, path in folders.items() if path is not None},
        **{name: getattr(application, name) for name in CHECK_LIMITS},
    }


def test_command(test: str) -> str:
    """The command that runs a test of pytest once more. `test` is its node id."""
    return shlex.join(["pytest", "--postcrash", visible(test)])


def judge_again(store: Store, finding: Finding) -> ApplicationJudge:
    """The judge that made a finding. UsageError if its recording does not say how to judge, or a program is not here.

    An application of the catalogue is taken from this machine's own catalogue.
    """
    metadata = provenance(store, finding)
    if metadata.test is not None:
        raise UsageError(f"{finding.id}: its check is a function of a test: run  {test_command(metadata.test)}")
    application = metadata.application
    if application is None:
        raise UsageError(f"{finding.id}: its recording does not say which application it is of")
    known = catalogued(application)
    if known is not None:
        require_installed(known)
        require_built(known)
    return ApplicationJudge(known or application, acknowledged=metadata.acknowledged)
