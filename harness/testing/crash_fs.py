"""The fixture `crash_fs`: runs something on a file system and judges what crashes leave of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from postcrash.apps import Application
from postcrash.harness.auditing.application_choice import application_of_commands, variants_of
from postcrash.harness.auditing.audit import workload_of
from postcrash.harness.auditing.folder_judge import FolderJudge
from postcrash.harness.auditing.function_judge import FunctionJudge
from postcrash.harness.auditing.judge import ABOUT, TEST, ApplicationJudge, about, test_command
from postcrash.harness.cli.programs.audit_report import require_programs_run
from postcrash.harness.errors import UsageError
from postcrash.harness.files.workload_files import simulated
from postcrash.harness.testing.judging import judge_folders, judge_operations
from postcrash.harness.testing.rig import Case, Rig, failures
from postcrash.model import Workload, WorkloadError, parse_workload

_FILE = "operations"
"""What errors call the text of a test's operations."""


class CrashFs:
    """A file system on which a test runs operations or a program, and which is then crashed everywhere and judged.

    First call `operations` or `run`, then `check`.
    """

    def __init__(self, rig: Rig, case: Case, node: pytest.Item) -> None:
        self._rig, self._case, self._node = rig, case, node
        self._workload: Workload | None = None
        self._run = ""
        self.is_checked = False
        """Whether `check` was called."""

    @property
    def target(self) -> str:
        """The name of the target."""
        return self._case.target.name

    def operations(self, text: str) -> None:
        """Run the operations of `text`, in the .ops language (docs/workloads.md)."""
        with failures(self._rig):
            try:
                self._set_workload(simulated(parse_workload(text, self._node.name, _FILE), _FILE))
            except WorkloadError as error:
                raise UsageError(str(error)) from error

    def run(self, command: str, set_up: str = "") -> None:
        """Run a program: a shell command, which starts in the root of the file system.

        It sees this machine's files, read-only. Each line that it prints acknowledges something. `set_up` is another
        command that runs before it; what it leaves is durable. In both, `{here}` is the folder of the test's file.
        """
        with failures(self._rig):
            require_programs_run(self._rig.session)
            self._run = command
            self._set_workload(workload_of(_application(command, "true", set_up, self._node.path.parent)))

    def check(self, check: Callable[[Path, Sequence[str]], object] | str | None = None) -> None:
        """Crash everywhere, recover each crash state, and have it judged. The test fails unless all is well.

        `check` is a function, or a shell command as of `postcrash audit --check`. A function gets the folder that a
        crash has left, and what had been acknowledged: the lines that the program had printed, or the operations that
        had returned. It raises an exception if something is wrong. Without a check, operations are judged by the
        properties of the test's marker, or by what is expected of the file system.
        """
        self.is_checked = True
        with failures(self._rig):
            if self._workload is None:
                raise UsageError("crash_fs.check() comes after crash_fs.operations() or crash_fs.run()")
            if check is not None and self._case.prop is not None:
                raise UsageError(f"the property {self._case.prop.name} judges, and so does the check: give one of them")
            if check is None and self._workload.runs_programs:
                raise UsageError("what a program promises only its check can say: crash_fs.check(CHECK)")
            if check is None:
                judge_operations(self._rig, self._case, self._workload, self._node)
            elif isinstance(check, str):
                self._check_by_command(self._workload, check)
            else:
                self._check_by_function(self._workload, check)

    def _set_workload(self, workload: Workload) -> None:
        if self._workload is not None:
            raise UsageError("a test runs one thing: call crash_fs.operations() or crash_fs.run() once")
        self._workload = workload

    def _check_by_command(self, workload: Workload, check: str) -> None:
        application = _application(self._run, check, "", self._node.path.parent)
        with ApplicationJudge(application, self._rig.how.budget.seconds) as judge:
            self._judge_folders(workload, judge, {ABOUT: about(application)}, again="")

    def _check_by_function(self, workload: Workload, check: Callable[[Path, Sequence[str]], object]) -> None:
        judge = FunctionJudge(check, (Exception, pytest.fail.Exception), self._rig.how.budget.seconds)
        test = self._node.nodeid
        self._judge_folders(workload, judge, {TEST: test}, again=test_command(test))

    def _judge_folders(self, workload: Workload, judge: FolderJudge, about: dict[str, Any], again: str) -> None:
        judge_folders(self._rig, self._case, workload=workload, judge=judge, about=about, node=self._node, again=again)


def _application(run: str, check: str, set_up: str, folder: Path) -> Application:
    """Makes an application of these commands, which see `folder` and can call it `{here}`. Raises UsageError."""
    (application,) = variants_of(application_of_commands(run, check, set_up, folder), {}, every=False)
    return application
