"""Judges that run a check of every folder that a crash can leave."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

from postcrash.apps import CheckResult, Folder, SandboxError, UnreadFolderError
from postcrash.model import NO_TIME_FOR_CHECKS, History, Observation, Verdict
from postcrash.model.judge import Opinion
from postcrash.model.operation import SAYS
from postcrash.model.tree import ROOT_PATH

NAME = "application"


@dataclass(frozen=True, slots=True)
class FolderState:
    """A folder that a crash can leave, and what had been acknowledged."""

    folder: Folder
    acknowledged: tuple[str, ...]


def opinion_of_unmounted(observation: Observation) -> Opinion | None:
    """The opinion of a crash state that does not mount. None if it does."""
    if not observation.mount_errno and ROOT_PATH in observation.tree:
        return None
    return Opinion(Verdict.UNDECIDED, False, f"a crash state does not mount (errno {observation.mount_errno})")


class FolderJudge(ABC):
    """Runs a check of the folder of every crash state, with the lines that had been acknowledged.

    Folders with equal bytes and equal acknowledgements are checked once. A check that
    failed is run anew each time, so that it has failed twice when a violation is confirmed.
    """

    name = NAME
    depends_on = ("returned",)
    looks_at = ("walk", "bytes")
    """Recoveries that tell contents byte by byte."""

    def __init__(self, seconds: float | None = None, *, keeps: bool = False) -> None:
        """`seconds`: how long all checks together may take; None is no limit. `keeps`: keep what passed."""
        self._seconds, self._spent, self._keeps = seconds, 0.0, keeps
        self.kept: list[FolderState] = []
        """What passed, in the order in which it came; empty unless it is to be kept."""
        self._passed: set[tuple[str, tuple[str, ...]]] = set()
        self._failed: set[tuple[str, tuple[str, ...]]] = set()
        self.earliest: FolderState | None = None
        """The first folder that passed with the fewest acknowledgements: the folder as it was at the start."""
        self.latest: FolderState | None = None
        """The last folder that passed with the most acknowledgements."""

    @property
    @abstractmethod
    def version(self) -> str:
        """See `Judge`."""

    @abstractmethod
    def ask(self, folder: Folder, acknowledged: tuple[str, ...]) -> CheckResult:
        """The result of the check. Raises SandboxError if it cannot be run."""

    @property
    @abstractmethod
    def no_answer(self) -> str:
        """The reason of a ruling if a check gave no exit status."""

    @property
    def folders(self) -> int:
        """The number of different folders, with acknowledgements, that were checked."""
        return len(self._passed | self._failed)

    def check(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if unmounted := opinion_of_unmounted(observation):
            return unmounted
        if self._seconds is not None and self._spent > self._seconds:
            return Opinion(Verdict.UNDECIDED, False, NO_TIME_FOR_CHECKS, is_last=True)
        try:
            result = self._result_of(Folder.of(observation.tree), self.acknowledged(history))
        except (UnreadFolderError, SandboxError) as error:
            return Opinion(Verdict.UNDECIDED, False, str(error))
        if result.status is None:
            return Opinion(Verdict.UNDECIDED, True, result.output or self.no_answer)
        if result.status == 0:
            return Opinion(Verdict.HOLDS, True, "")
        return Opinion(Verdict.VIOLATED, True, message_of(result))

    def acknowledged(self, history: History) -> tuple[str, ...]:
        """The lines that the check gets."""
        return acknowledged(history)

    def _result_of(self, folder: Folder, lines: tuple[str, ...]) -> CheckResult:
        key = folder.digest, lines
        if key in self._passed:
            return CheckResult(0, "")
        started = time.monotonic()
        result = self.ask(folder, lines)
        self._spent += time.monotonic() - started
        (self._passed if result.status == 0 else self._failed).add(key)
        if result.status == 0:
            self._keep(FolderState(folder, lines))
        return result

    def _keep(self, state: FolderState) -> None:
        if self._keeps:
            self.kept.append(state)
        count = len(state.acknowledged)
        if self.earliest is None or count < len(self.earliest.acknowledged):
            self.earliest = state
        if self.latest is None or count >= len(self.latest.acknowledged):
            self.latest = state


def acknowledged(history: History) -> tuple[str, ...]:
    """The lines that the application had written. Without an application, the operations that had returned."""
    if history.workload.runs_programs:
        return tuple(operation.value for operation in history.returned_operations if operation.word == SAYS)
    return tuple(map(str, history.returned_operations[len(history.workload.setup) :]))


def message_of(result: CheckResult) -> str:
    """The first line that the check wrote, or its exit status."""
    line = next(filter(None, map(str.strip, result.output.splitlines())), "")
    return line[:500] or f"the check exits with {result.status}"
