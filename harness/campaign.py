"""Many plans over a few machines. What is finished is in the store at once, so that an interrupted campaign resumes."""

import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import postcrash
from postcrash.harness.binaries import CHECKOUT_FOLDERS, find_binary
from postcrash.harness.errors import RefusedError
from postcrash.harness.examination import Examination, Ruling
from postcrash.harness.examine import Plan, examine
from postcrash.harness.machine import Machine, MachineSettings
from postcrash.model import Verdict
from postcrash.reports.store import Store


class Progress(Protocol):
    """Who wants to know how a campaign gets on. Called from several threads."""

    def recoveries(self, count: int) -> None:
        """So many more recoveries have been run."""
        ...

    def finished(self, plan: Plan, examination: Examination) -> None:
        """One more plan is done."""
        ...


@dataclass(frozen=True, slots=True)
class Crew:
    """The machines of a campaign: how they are started, and how many (one a CPU is best)."""

    settings: MachineSettings
    machines: int


@lru_cache(maxsize=1)
def tool_digest() -> str:
    """SHA-256 of our own code: results are taken from the store only if the same code would find them again."""
    digest = hashlib.sha256()
    package = Path(postcrash.__file__).resolve().parent
    sources = [path for folder in sorted(package.iterdir()) if folder.is_dir() for path in sorted(folder.rglob("*.py"))]
    for path in [*sources, *(find_binary(name) for name in CHECKOUT_FOLDERS)]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def run_campaign(
    plans: Sequence[Plan], crew: Crew, store: Store, progress: Progress, *, fresh: bool = False
) -> list[Examination]:
    """Examine every plan; results in the order of `plans`. Takes what the store has unless `fresh`.

    Raises the first HarnessError of any machine; what was finished by then is in the store.
    """
    results: dict[int, Examination] = {}
    todo: list[tuple[int, Plan]] = []
    for i, plan in enumerate(plans):
        known = None if fresh else _known(plan, store)
        if known is None:
            todo.append((i, plan))
        else:
            results[i] = known
            progress.finished(plan, known)
    for i, plan, examination, recording in _examine_all(todo, crew, store, progress):
        _keep(plan, examination, recording, store)
        results[i] = examination
        progress.finished(plan, examination)
    return [results[i] for i in range(len(plans))]


def run_plan(
    plan: Plan, machine: Callable[[], Machine], store: Store, progress: Progress, *, fresh: bool = False
) -> Examination:
    """Examine one plan as `run_campaign` does, on a machine that is asked for only where the store has no result."""
    examination = None if fresh else _known(plan, store)
    if examination is None:
        examination, recording = _examine(plan, machine(), store.scratch(), progress)
        try:
            _keep(plan, examination, recording, store)
        finally:
            _remove((0, plan, examination, recording))
    progress.finished(plan, examination)
    return examination


def _known(plan: Plan, store: Store) -> Examination | None:
    known = store.get_run(plan.key(tool_digest()))
    return None if known is None else Examination.from_json(known, store.finding)


def _keep(plan: Plan, examination: Examination, recording: Path, store: Store) -> None:
    """What was refused is no result to keep."""
    if not examination.recording:
        return
    store.keep_base(plan.base.path, plan.base.id)
    for id, path in {examination.recording: recording, **examination.recoveries_kept}.items():
        store.adopt_recording(path, id)
    store.put_run(plan.key(tool_digest()), examination.to_json(), examination.findings)


_Done = tuple[int, Plan, Examination, Path]


def _examine_all(todo: list[tuple[int, Plan]], crew: Crew, store: Store, progress: Progress) -> Iterator[_Done]:
    """Results as they come. The store belongs to this thread; machines run in threads of their own."""
    work: queue.SimpleQueue[tuple[int, Plan]] = queue.SimpleQueue()
    for item in todo:
        work.put(item)
    done: queue.SimpleQueue[_Done | BaseException] = queue.SimpleQueue()
    with ExitStack() as stack:
        stack.callback(_remove_unclaimed, done)
        for cpu in range(min(crew.machines, len(todo))):
            machine = Machine(crew.settings, cpu)
            worker = threading.Thread(target=_work, args=(machine, work, done, store.scratch, progress), daemon=True)
            stack.callback(worker.join)
            stack.callback(machine.close)
            worker.start()
        for _ in todo:
            result = _next(done)
            if isinstance(result, BaseException):
                raise result
            try:
                yield result
            finally:  # an interrupt may come before the recordings are in the store
                _remove(result)


def _remove_unclaimed(done: "queue.SimpleQueue[_Done | BaseException]") -> None:
    """Recordings of results that nobody took, because something else ended the campaign."""
    while not done.empty():
        result = done.get()
        if not isinstance(result, BaseException):
            _remove(result)


def _remove(result: _Done) -> None:
    """Its recordings, if they are still where they were made."""
    for path in (result[3], *result[2].recoveries_kept.values()):
        path.unlink(missing_ok=True)


def _next(done: "queue.SimpleQueue[_Done | BaseException]") -> _Done | BaseException:
    """Wait in short steps, so that Ctrl-C is noticed."""
    while True:
        try:
            return done.get(timeout=0.2)
        except queue.Empty:
            continue


def _work(
    machine: Machine,
    work: "queue.SimpleQueue[tuple[int, Plan]]",
    done: "queue.SimpleQueue[_Done | BaseException]",
    scratch: Callable[[], Path],
    progress: Progress,
) -> None:
    try:
        machine.boot()
        while True:
            index, plan = work.get_nowait()
            done.put((index, plan, *_examine(plan, machine, scratch(), progress)))
    except queue.Empty:
        return
    except Exception as error:  # for the thread that can report it
        done.put(error)


def _examine(plan: Plan, machine: Machine, recording: Path, progress: Progress) -> tuple[Examination, Path]:
    """The examination with its `recording`, of which nothing is left if it fails."""
    counter = _Counter(progress)
    try:
        examination = _examined(machine, plan, recording, counter)
    except BaseException:
        for part in recording.parent.glob(f"{recording.name}*"):
            part.unlink(missing_ok=True)
        raise
    counter.total(examination.recoveries)
    return examination, recording


def _examined(machine: Machine, plan: Plan, recording: Path, counter: "_Counter") -> Examination:
    try:
        return examine(machine, plan, recording, counter.total)
    except RefusedError as error:
        if not plan.may_be_refused:
            raise
        refused = Ruling(Verdict.UNDECIDED, reason=str(error))
        return Examination(rulings={judge.name: refused for judge in plan.judges})


class _Counter:
    """Turns running totals into steps."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._last = progress, 0

    def total(self, count: int) -> None:
        self._progress.recoveries(count - self._last)
        self._last = count
