"""Finds out what an application needs of a file system: its check judges all folders that a crash could leave."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from postcrash.apps import Application, SandboxError, UnreadFolderError
from postcrash.apps.needs.space import Moment
from postcrash.apps.protocol import Protocol, TraceError, read_trace
from postcrash.apps.protocol.states import State
from postcrash.harness.auditing.folder_judge import message_of
from postcrash.harness.auditing.judge import CHECKS_AT_ONCE, sandbox_of
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.binaries import find_binary

_ERRORS_SHOWN = 500


@dataclass(frozen=True, slots=True)
class _Answer:
    """The objection of a check to a folder, or why the check cannot tell. Both are empty if all is well."""

    message: str
    unknown: str


class ApplicationNeeds:
    """An application, its protocol, and its check. Use it in a `with` statement.

    Raises UsageError where the application does not run to its end, and InfrastructureError where nothing can be run.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        self._sandbox = sandbox_of(application)
        self._pool = ThreadPoolExecutor(CHECKS_AT_ONCE)
        self._known: dict[tuple[str, tuple[str, ...]], _Answer] = {}
        try:
            self.protocol = protocol_of(application)
            if self.protocol.attributed:
                raise UsageError(
                    f"{application.name} uses extended attributes, which `postcrash needs` does not follow"
                )
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close()

    @property
    def folders(self) -> int:
        """The number of different folders, with acknowledgements, that were checked."""
        return len(self._known)

    @property
    def unknown(self) -> str:
        """Why the check could not tell of some folder; empty if it always could."""
        return next((answer.unknown for answer in self._known.values() if answer.unknown), "")

    def judge(self, states: list[tuple[State, Moment]]) -> list[str | None]:
        """The objections of the check to these states: empty if it accepts one, None if it cannot tell."""
        return list(self._pool.map(self._message, states))

    def _close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._sandbox.close()

    def _message(self, question: tuple[State, Moment]) -> str | None:
        state, moment = question
        try:
            folder = state.folder
        except UnreadFolderError as error:
            raise UsageError(f"{self.application.name}: {error}") from error
        key = folder.digest, moment.outputs
        if key not in self._known:
            try:
                result = self._sandbox.run(folder, self.application.check, moment.outputs)
            except SandboxError as error:
                raise UsageError(f"{self.application.name}: {error}") from error
            late = f"the check did not end within {self.application.check_seconds} s, or was killed"
            unknown = (result.output or late) if result.status is None else ""
            self._known[key] = _Answer(message_of(result) if result.status else "", unknown)
        answer = self._known[key]
        return None if answer.unknown else answer.message


def protocol_of(application: Application) -> Protocol:
    """The changes of the application's system calls in one run on this machine, in a temporary folder."""
    tracer = find_binary("postcrash-calls")
    sandbox = sandbox_of(application, seconds=application.seconds)
    try:
        with scratch() as place:
            folder, trace = Path(place, "folder"), Path(place, "trace")
            folder.mkdir()
            if application.set_up:
                _run(application, sandbox.command_in(folder, application.set_up))
            _run(application, [str(tracer), str(folder), str(trace), *sandbox.command_in(folder, application.run)])
            return read_trace(trace)
    except (TraceError, OSError) as error:
        raise InfrastructureError(f"{application.name} cannot be traced: {error}") from error
    finally:
        sandbox.close()


def _run(application: Application, command: list[str]) -> None:
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=application.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"{application.name} did not end within {application.seconds} s") from error
    if ended.returncode:
        errors = ended.stderr.decode(errors="backslashreplace").strip()[-_ERRORS_SHOWN:]
        raise UsageError(f"{application.name} ends with status {ended.returncode} on this machine: {errors}")
