"""A crash while an application recovers from a crash by itself.

Each folder that the first crash left, and that the check accepted, is put onto the target and made durable there. The
application's own recovery is recorded, and crashed everywhere. Its check must accept what is left, too, with the lines
that had been acknowledged before the first crash.
"""

import fcntl
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from postcrash.apps import Application, Sandbox
from postcrash.harness.auditing.folder_judge import FolderState
from postcrash.harness.auditing.folder_plan import AuditSetup, folder_plan
from postcrash.harness.auditing.judge import ABOUT, ACKNOWLEDGED, ApplicationJudge, about, sandbox_of
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.session import Session
from postcrash.harness.files.places import cache_folder
from postcrash.model import History, Verdict, Workload, worst
from postcrash.model.operation import RUN, SAYS, Operation
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class SecondCrash:
    """The result of crashes within the application's recovery of one folder, on one disk."""

    state: FolderState
    how: Exploration
    result: Examination


@dataclass(frozen=True, slots=True)
class SecondCrashes:
    """The results of crashes within the application's recovery of each folder, on each disk.

    failed  number of folders in which the recovery fails by itself
    """

    folders: int
    failed: int
    crashes: tuple[SecondCrash, ...]

    @property
    def results(self) -> tuple[Examination, ...]:
        """The results alone."""
        return tuple(each.result for each in self.crashes)

    @property
    def undecided(self) -> str:
        """Why the recovery is undecided, whatever the results are. Empty if it is not."""
        if not self.folders:
            return "there was no folder that the check accepted"
        return "its recovery fails by itself in every folder" if self.failed == self.folders else ""

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst([*(result.verdict for result in self.results), *([Verdict.UNDECIDED] if self.undecided else [])])

    @property
    def counts(self) -> tuple[int, int, int]:
        """Crash states that were judged, all that there are, and recoveries."""
        covered, states = (sum(getattr(each, name) for each in self.results) for name in ("covered", "states"))
        return covered, states, sum(each.recoveries for each in self.results)


def second_crashes(
    setup: AuditSetup,
    application: Application,
    target: Target,
    disks: Sequence[Exploration],
    states: Sequence[FolderState],
) -> SecondCrashes:
    """Crash the application's recovery of each of `states`, on each of `disks`. Raises HarnessError."""
    ends = _Ends()
    with closing(sandbox_of(application)) as sandbox, _archives(states) as archives:
        judges = {
            lines: _RecoveryJudge(application, lines, sandbox, ends)
            for lines in dict.fromkeys(state.acknowledged for state in states)
        }
        places = [(state, disk) for state in states for disk in disks]
        plans = [
            _plan(setup.session, application, target, disk, judges[state.acknowledged], archives.file_of(state))
            for state, disk in places
        ]
        results = setup.examine(plans, failures=True)
        crashes = tuple(SecondCrash(state, disk, result) for (state, disk), result in zip(places, results, strict=True))
        archives.keep([each.state for each in crashes if each.result.findings])
        failed = sum(_unpacking(archives.file_of(state)) in ends.failed - ends.succeeded for state in states)
    return SecondCrashes(len(states), failed, crashes)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Commands that unpacked folders in the guest, by how the recovery that followed ended."""

    failed: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)


class _RecoveryJudge(ApplicationJudge):
    """Also notes how each recovery ended."""

    def __init__(self, application: Application, lines: tuple[str, ...], sandbox: Sandbox, ends: _Ends) -> None:
        super().__init__(application, acknowledged=lines, sandbox=sandbox)
        self._ends = ends

    def acknowledged(self, history: History) -> tuple[str, ...]:
        """See `FolderJudge`."""
        (unpack,), operations = history.workload.setup, history.workload.ops
        has_failed = any(operation.word == SAYS and operation.value == _FAILED for operation in operations)
        (self._ends.failed if has_failed else self._ends.succeeded).add(unpack.value)
        return super().acknowledged(history)


def _plan(
    session: Session, application: Application, target: Target, how: Exploration, judge: ApplicationJudge, file: Path
) -> Plan:
    unpack = Operation(RUN, value=_unpacking(file), seconds=application.seconds)
    recover = Operation(RUN, value=_may_fail(application.recover), seconds=application.check_seconds)
    workload = Workload(f"{application.name} recovering", (unpack,), (recover,)).with_tail()
    metadata = {ABOUT: about(application), ACKNOWLEDGED: list(judge.before or ())}
    plan = folder_plan(session, workload, target, how, (judge,), metadata, inodes=application.inodes)
    return replace(plan, findings_max=1)


def _unpacking(file: Path) -> str:
    return f"tar -xpf {shlex.quote(str(file))}"


def _may_fail(command: str) -> str:
    """The command as one that succeeds even if it fails by itself, and says so: there may be nothing to recover yet.

    It still fails if the shell does not find the command, or if the command is killed. The check judges what is left.
    """
    failed = f"[ $status -eq 0 ] || echo {shlex.quote(_FAILED)}"
    return f"sh -c {shlex.quote(command)}; status=$?; {failed}; [ $status -lt 126 ]"


_KEPT = ".kept"
_FAILED = "postcrash: the recovery fails"


class _Archives:
    """A file for each folder, at a place that is the same in every run, so that ids of findings are, too."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def file_of(self, state: FolderState) -> Path:
        """Where the file of a folder is."""
        return self._place / f"{state.folder.digest}.tar"

    def write(self, state: FolderState) -> None:
        """Make the file of a folder, if it is not there."""
        file = self.file_of(state)
        if not file.exists():
            part = file.with_suffix(f".tar.{os.getpid()}")
            part.write_bytes(state.folder.archive)
            part.replace(file)

    def keep(self, states: Sequence[FolderState]) -> None:
        """Never remove the files of these folders: a finding about a guest that was lost runs its workload again."""
        for state in states:
            self.file_of(state).with_suffix(_KEPT).touch()

    def remove(self) -> None:
        """Remove all others."""
        for file in self._place.glob("*.tar*"):
            if not file.with_name(f"{file.name.partition('.')[0]}{_KEPT}").exists():
                file.unlink(missing_ok=True)


@contextmanager
def _archives(states: Sequence[FolderState]) -> Iterator[_Archives]:
    """The files of these folders. The last of the audits that use them removes them."""
    place = cache_folder() / "folders"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "in-use").open("w") as in_use:
        fcntl.flock(in_use, fcntl.LOCK_SH)
        archives = _Archives(place)
        try:
            for state in states:
                archives.write(state)
            yield archives
        finally:
            with suppress(BlockingIOError):
                fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                archives.remove()
