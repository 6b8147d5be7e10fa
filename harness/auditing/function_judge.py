"""The judge whose check is a Python function, as tests of pytest have it."""

import subprocess
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from postcrash.apps import CheckResult, Folder, SandboxError
from postcrash.harness.auditing.folder_judge import FolderJudge
from postcrash.harness.files.places import quick_folder
from postcrash.harness.files.scratch import scratch

CheckFunction = Callable[[Path, Sequence[str]], object]
"""Gets a copy of a folder, and what had been acknowledged. It raises an exception, or returns False, if it objects."""


class FunctionJudge(FolderJudge):
    """Calls a function for every folder, in this process and without a time limit of its own."""

    version = ""

    def __init__(
        self,
        function: CheckFunction,
        objections: tuple[type[BaseException], ...] = (Exception,),
        seconds: float | None = None,
    ) -> None:
        """`objections`: exceptions by which the function objects. `seconds` as in `FolderJudge`."""
        super().__init__(seconds)
        self._function, self._objections = function, objections

    @property
    def no_answer(self) -> str:
        """A function that returns has answered."""
        return "the check did not answer"

    def ask(self, folder: Folder, acknowledged: tuple[str, ...]) -> CheckResult:
        """See `FolderJudge`. Messages name paths relative to the folder, because its place differs each time."""
        with scratch(quick_folder()) as place:
            _unpack(folder, place)
            try:
                answer = self._function(place, acknowledged)
            except self._objections as error:
                return CheckResult(1, _exception_line(error).replace(f"{place}/", "").replace(str(place), "."))
        return CheckResult(1, "the check returned False") if answer is False else CheckResult(0, "")


def _unpack(folder: Folder, place: Path) -> None:
    command = ["tar", "--no-same-owner", "-xpf", "-", "-C", str(place)]
    try:
        done = subprocess.run(command, input=folder.archive, capture_output=True, check=False)
    except OSError as error:
        raise SandboxError(f"tar cannot be run: {error.strerror}") from error
    if done.returncode:
        raise SandboxError(
            f"a folder cannot be unpacked: {done.stderr.decode(errors='backslashreplace').strip()[:500]}"
        )


def _exception_line(error: BaseException) -> str:
    """What was raised, in a line, and where."""
    first = next(iter(str(error).splitlines()), "")
    what = first if isinstance(error, AssertionError) and first else f"{type(error).__name__}: {first}".rstrip(": ")
    raised = traceback.extract_tb(error.__traceback__)[1:2]
    return what + "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in raised)
