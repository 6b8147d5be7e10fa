"""A crash while an application recovers from a crash by itself.

Each folder that the first crash left, and that the check accepted, is put onto the target and made durable there. The
application's own recovery is recorded, and crashed everywhere. Its check must accept what is left, too, with the lines
that had been acknowledged before the first crash.
"""

import fcntl
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from postcrash.apps import Application
from postcrash.harness.auditing.folder_judge import FolderState
from postcrash.harness.auditing.folder_plan import folder_plan
from postcrash.harness.auditing.judge import ABOUT, ACKNOWLEDGED, ApplicationJudge, about
from postcrash.harness.examination.campaign import Progress, run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.places import cache_folder
from postcrash.harness.session import Session
from postcrash.model import Verdict, Workload, worst
from postcrash.model.operation import RUN, Operation
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class SecondCrashes:
    """What came of crashes within the application's recovery of each of so many folders; a result for each disk."""

    folders: int
    results: tuple[Examination, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst(result.verdict for result in self.results)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Crash states that were judged, all that there are, and recoveries."""
        covered, states = (sum(getattr(each, name) for each in self.results) for name in ("covered", "states"))
        return covered, states, sum(each.recoveries for each in self.results)


def second_crashes(
    session: Session,
    application: Application,
    target: Target,
    disks: Sequence[Exploration],
    guests: int | None,
    progress: Progress,
    states: Sequence[FolderState],
) -> SecondCrashes:
    """Crash the application's recovery of each of `states`, on each of `disks`. Raises HarnessError."""
    with ExitStack() as stack:
        files = stack.enter_context(_archives(states))
        judges = {
            lines: stack.enter_context(ApplicationJudge(application, acknowledged=lines))
            for lines in dict.fromkeys(state.acknowledged for state in states)
        }
        plans = [
            _plan(session, application, target, disk, judges[state.acknowledged], state, file)
            for state, file in zip(states, files, strict=True)
            for disk in disks
        ]
        results = run_campaign(plans, session.crew(guests), session.store, progress, fresh=True)
    return SecondCrashes(len(states), tuple(results))


def _plan(
    session: Session,
    application: Application,
    target: Target,
    how: Exploration,
    judge: ApplicationJudge,
    state: FolderState,
    file: Path,
) -> Plan:
    unpack = Operation(RUN, value=f"tar -xpf {shlex.quote(str(file))}", seconds=application.seconds)
    recover = Operation(RUN, value=application.recover, seconds=application.check_seconds)
    workload = Workload(f"{application.name} recovering", (unpack,), (recover,)).with_tail()
    told = {ABOUT: about(application), ACKNOWLEDGED: list(state.acknowledged)}
    return replace(folder_plan(session, workload, target, how, (judge,), told), findings_max=1)


@contextmanager
def _archives(states: Sequence[FolderState]) -> Iterator[list[Path]]:
    """A file with each folder, at a place that is the same in every run, so that ids of findings are, too.

    The last of the audits that use the files removes them.
    """
    place = cache_folder() / "folders"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "in-use").open("w") as in_use:
        fcntl.flock(in_use, fcntl.LOCK_SH)
        files = [place / f"{state.folder.digest}.tar" for state in states]
        try:
            for file, state in zip(files, states, strict=True):
                if not file.exists():
                    part = file.with_suffix(f".{id(state)}")
                    part.write_bytes(state.folder.archive)
                    part.replace(file)
            yield files
        finally:
            try:
                fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                for file in place.glob("*.tar"):
                    file.unlink(missing_ok=True)
