"""Run many plans on a few machines. Finished plans go into the store at once, so an interrupted campaign can resume."""

import hashlib
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Protocol

import postcrash
from postcrash import _core
from postcrash.harness.budget import is_over
from postcrash.harness.errors import CrashDiskEndedError, InfrastructureError, OperationFailedError
from postcrash.harness.examination.comparison import comparison_among
from postcrash.harness.examination.examiner import examine, not_run, unsupported
from postcrash.harness.examination.judging import OpinionMemo
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.support import WORKS_ELSEWHERE, Support
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.binaries import CHECKOUT_FOLDERS, find_binary
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding
from postcrash.store.store import Store, StoreError

_LAST_OPINION_S = 5.0
"""How long a judge may still take for an opinion after the campaign has ended."""
UNFLUSHED_MAX = 256
UNFLUSHED_SECONDS = 2.0
"""Rows are put into the store together: at most this many, and after at most this many seconds."""
AHEAD = 8
"""The number of plans queued for each machine, so that no machine is idle while results are put into the store."""


class Progress(Protocol):
    """Shows the progress of a campaign. Its methods are called from several threads."""

    def recoveries(self, count: int) -> None:
        """This many more recoveries have been run."""
        ...

    def finished(self, plan: Plan, examination: Examination) -> None:
        """One more plan is done."""
        ...


@dataclass(frozen=True, slots=True)
class Crew:
    """The machines of a campaign: how they are started, and how many there are (one per CPU is best)."""

    settings: MachineSettings
    machines: int


def _sources() -> list[Path]:
    """Python, and the tables of rules, targets and applications that it reads."""
    package = Path(postcrash.__file__).resolve().parent
    return [
        path
        for folder in sorted(package.iterdir())
        if folder.is_dir()
        for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.toml")))
        if path.name != "Cargo.toml"
    ]


def tool_files() -> list[Path]:
    """Our own code: Python with its tables, the native core, and the programs."""
    return [*_sources(), *_programs()]


def _programs() -> list[Path]:
    return [Path(_core.__file__), *(find_binary(name) for name in CHECKOUT_FOLDERS)]


@lru_cache(maxsize=1)
def tool_digest() -> str:
    """SHA-256 of our own code. A result is taken from the store only if the same code produced it."""
    return _digest(tool_files())


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """SHA-256 of our Python code with its tables. It is the same wherever the programs were built."""
    return _digest(_sources())


@lru_cache(maxsize=1)
def programs_digest() -> str:
    """SHA-256 of what was built from our Rust code: the native core and the programs."""
    return _digest(_programs())


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256("".join(map(content_digest, files)).encode()).hexdigest()


def run_campaign(
    plans: Sequence[Plan],
    crew: Crew,
    store: Store,
    progress: Progress,
    *,
    fresh: bool = False,
    failures: bool = False,
    until: float | None = None,
) -> list[Examination]:
    """Examine every plan and return the results in the order of `plans`. Reuses results of the store unless `fresh`.

    Raises the first HarnessError of any machine; plans that were finished by then are in the store. With `failures`, a
    workload with an operation that fails is undecided and does not end the campaign. What is not finished when the
    monotonic clock reaches `until` is undecided, too.
    """
    kept = ResultStore(store, fresh=fresh)
    results: dict[int, Examination] = {}
    lacking: dict[int, OperationFailedError] = {}
    todo: list[tuple[int, Plan]] = []
    for i, plan in enumerate(plans):
        known = kept.examination(plan)
        if known is None:
            todo.append((i, plan))
        else:
            results[i] = known
            progress.finished(plan, known)
    for done in examine_all(_batches(todo, until), crew, store.scratch, progress, until):
        if not isinstance(done.result, OperationFailedError):
            kept.keep(done)
            results[done.number] = done.result
        elif done.result.is_unsupported:
            lacking[done.number] = done.result
            results[done.number] = unsupported(done.plan, done.result)
        elif failures:
            results[done.number] = not_run(done.plan, str(done.result))
        else:
            raise done.result
        progress.finished(done.plan, results[done.number])
    for number, why in _not_lacking(plans, results, lacking).items():
        results[number] = not_run(plans[number], why)
    return [results[i] if i in results else not_run(plan, "it was not run: --time") for i, plan in enumerate(plans)]


def _not_lacking(
    plans: Sequence[Plan], results: Mapping[int, Examination], lacking: Mapping[int, OperationFailedError]
) -> dict[int, str]:
    """The plans whose operation seemed to be lacking but ran in another plan of the target, each with its error."""
    support: defaultdict[str, Support] = defaultdict(Support)
    for number, result in results.items():
        if result.recording:
            support[plans[number].target.name].ran(plans[number].workload)
    return {
        number: f"{error}, but {WORKS_ELSEWHERE}"
        for number, error in lacking.items()
        if support[plans[number].target.name].has(error.variant)
    }


def _batches(todo: Iterable[tuple[int, Plan]], until: float | None) -> Iterator["Batch"]:
    """Each plan as a batch of its own, while there is time."""
    return ([each] for each in takewhile(lambda _: not is_over(until), todo))


def run_plan(
    plan: Plan, machine: Callable[[], Machine], store: Store, progress: Progress, *, fresh: bool
) -> Examination:
    """Examine one plan as `run_campaign` does. `machine` is called only if the store has no result."""
    kept = ResultStore(store, fresh=fresh)
    examination = kept.examination(plan)
    if examination is None:
        recording = store.scratch()
        examination = _examine(plan, machine(), recording, progress)
        done = FinishedPlan(0, plan, recording, examination)
        try:
            kept.keep(done)
        finally:
            done.remove()
    progress.finished(plan, examination)
    return examination


def examination_in(run: Json, store: Store) -> Examination:
    """The examination that the store keeps as `run`. Raises `StoreError` if `run` is damaged."""
    try:
        return Examination.from_json(run, store.finding)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{store.folder}: damaged: a run is not what was put there: {error!r}") from error


@dataclass(frozen=True, slots=True)
class FinishedPlan:
    """A plan that is done, by its number. There is a recording unless the result is an operation that failed."""

    number: int
    plan: Plan
    recording: Path
    result: Examination | OperationFailedError

    def remove(self) -> None:
        """Remove the plan's recordings if they are still where they were made."""
        within = {} if isinstance(self.result, OperationFailedError) else self.result.recoveries_kept
        for path in (self.recording, *within.values()):
            path.unlink(missing_ok=True)


class ResultStore:
    """The results of plans in a store: looked up before a plan is run, and kept afterwards.

    kind   begins the keys. Runs that keep other parts of a result than campaigns do have keys of their own
    fresh  nothing is looked up
    """

    def __init__(self, store: Store, kind: str = "", *, fresh: bool = False) -> None:
        self.store, self._kind, self._fresh = store, kind, fresh
        self._rows: dict[str, Json] = {}
        self._findings: list[Finding] = []
        self._flushed = time.monotonic()

    def key(self, plan: Plan) -> str:
        """The key of the plan's result."""
        return f"{self._kind} {plan.key(tool_digest())}".lstrip()

    def row(self, key: str) -> Json | None:
        """The row of the key; None if there is none."""
        return None if self._fresh else self.store.get_run(key)

    def examination(self, plan: Plan) -> Examination | None:
        """The plan's result; None if there is none. Raises `StoreError` if it is damaged."""
        row = self.row(self.key(plan))
        return None if row is None else examination_in(row, self.store)

    def keep(self, done: "FinishedPlan") -> None:
        """Keep all that was found, at once. Without a recording nothing is kept, so that a later run tries again."""
        if isinstance(done.result, Examination) and done.result.recording:
            self.keep_recordings(done)
            self.keep_consoles(done)
            self.put(self.key(done.plan), done.result.to_json(), done.result.findings)
            self.flush()

    def keep_recordings(self, done: "FinishedPlan") -> None:
        """Keep a plan's recordings and base image."""
        assert isinstance(done.result, Examination)
        self.store.keep_base(done.plan.base.path, done.plan.base.id)
        for id, path in {done.result.recording: done.recording, **done.result.recoveries_kept}.items():
            self.store.adopt_recording(path, id)

    def keep_consoles(self, done: "FinishedPlan") -> None:
        """Keep the consoles of the guests that a plan lost. The plan's notes name these consoles."""
        assert isinstance(done.result, Examination)
        for lost in done.result.lost_guests:
            self.store.keep_console(lost)

    def put(self, key: str, row: Json, findings: Iterable[Finding] = ()) -> None:
        """Have a row and its findings kept by the next flush."""
        self._rows[key] = row
        self._findings += findings

    @property
    def is_flush_due(self) -> bool:
        """Whether there are many rows, or the last flush was some time ago."""
        return len(self._rows) >= UNFLUSHED_MAX or time.monotonic() - self._flushed > UNFLUSHED_SECONDS

    def flush(self) -> None:
        """Write rows and findings into the store, all of them or nothing."""
        if self._rows:
            self.store.put_runs(self._rows, findings=self._findings)
        self._rows, self._findings = {}, []
        self._flushed = time.monotonic()


Batch = Sequence[tuple[int, Plan]]
"""Numbered plans of one workload that differ only in the disk. One machine examines them one after another.

They have the same judges, whose opinions on equal observations are shared between the disks.
"""


@dataclass(slots=True)
class _Queues:
    """Work for machines (None: no more) and their results (None: the end of a batch)."""

    work: "queue.SimpleQueue[Batch | None]" = field(default_factory=queue.SimpleQueue)
    done: "queue.SimpleQueue[FinishedPlan | BaseException | None]" = field(default_factory=queue.SimpleQueue)

    def close(self, machines: int) -> None:
        """Tell machines that wait for work to end."""
        for _ in range(machines):
            self.work.put(None)


def examine_all(
    todo: Iterable[Batch],
    crew: Crew,
    scratch: Callable[[], Path],
    progress: Progress,
    until: float | None = None,
) -> Iterator[FinishedPlan]:
    """Yield results as they come. `todo` is read as machines become free. Each of its first batches starts one machine.

    All plans have the same recorder and judges. Recordings are made where `scratch` says, and are removed when the next
    result is asked for. Machines run in threads of their own. When the monotonic clock reaches `until`, unfinished work
    is given up. A judge that is still busy a few seconds later is left to its thread, whose results nobody takes.
    Raises the first HarnessError of any machine, except errors about one operation of one workload.
    """
    waiting, queues = iter(todo), _Queues()
    with ExitStack() as stack:
        stack.callback(_remove_unclaimed, queues)
        first = list(islice(waiting, crew.machines))
        recorders = (plan.how.recorder for batch in first for _, plan in batch)
        settings = settings_for_recorders(crew.settings, recorders)
        for _ in first:
            slot = _MachineSlot(settings)
            worker = threading.Thread(target=_work, args=(slot, queues, scratch, progress), daemon=True)
            stack.callback(worker.join, _LAST_OPINION_S)
            stack.callback(slot.close)
            worker.start()
        stack.callback(queues.close, len(first))
        comparison = comparison_among(judge for batch in first for _, plan in batch for judge in plan.judges)
        if comparison is not None:
            stack.callback(comparison.stop)
        yield from _results(queues, chain(first, waiting), (1 + AHEAD) * len(first), until)


def _results(queues: _Queues, todo: Iterator[Batch], ahead: int, until: float | None) -> Iterator[FinishedPlan]:
    """Keep `ahead` batches queued while there are more, and yield results, which are removed afterwards."""
    count = 0
    for item in islice(todo, ahead):
        queues.work.put(item)
        count += 1
    while count:
        try:
            result = _next(queues, until)
        except TimeoutError:
            return
        if isinstance(result, BaseException):
            raise result
        if result is None:
            more = next(todo, None)
            queues.work.put(more)
            count -= more is None
            continue
        try:
            yield result
        finally:  # an interrupt may come before the recordings are in the store
            result.remove()


def _remove_unclaimed(queues: _Queues) -> None:
    """Remove the recordings of results that nobody took because something else ended the campaign."""
    while not queues.done.empty():
        result = queues.done.get()
        if isinstance(result, FinishedPlan):
            result.remove()


def _next(queues: _Queues, until: float | None) -> FinishedPlan | BaseException | None:
    """Wait in short steps, so that Ctrl-C is noticed. Raises TimeoutError if nothing has come by `until`."""
    while True:
        try:
            return queues.done.get(timeout=0.2)
        except queue.Empty:
            if is_over(until):
                raise TimeoutError from None


class _MachineSlot:
    """One machine of a campaign. The machine is replaced when its crash disk has ended by itself."""

    def __init__(self, settings: MachineSettings) -> None:
        self._settings = settings
        self._machine, self._closed = Machine(settings), False
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the machine, even while it works."""
        with self._lock:
            self._closed = True
        self._machine.close()

    def boot(self) -> None:
        """Start the first guest."""
        self._machine.boot()

    def _replace(self) -> None:
        self._machine.close()
        with self._lock:
            if self._closed:
                raise CrashDiskEndedError("the campaign has ended")
            self._machine = Machine(self._settings)
        self._machine.boot()

    def examine(self, plan: Plan, recording: Path, progress: Progress, memo: OpinionMemo) -> Examination:
        """Examine the plan. If the crash disk ends meanwhile, try once more with a new one."""
        try:
            return _examine(plan, self._machine, recording, progress, memo)
        except CrashDiskEndedError:
            self._replace()
        try:
            result = _examine(plan, self._machine, recording, progress, memo)
        except CrashDiskEndedError as error:
            raise InfrastructureError(f"{plan.workload.name} on {plan.target.name}, tried twice: {error}") from error
        result.notes.append(f"{plan.workload.name}: the crash disk's process ended; a new one tried it again")
        return result


def _work(slot: _MachineSlot, queues: _Queues, scratch: Callable[[], Path], progress: Progress) -> None:
    try:
        slot.boot()
        while (batch := queues.work.get()) is not None:
            memo = OpinionMemo()
            for number, plan in batch:
                recording = scratch()
                result: Examination | OperationFailedError
                try:
                    result = slot.examine(plan, recording, progress, memo)
                except OperationFailedError as failed:
                    result = failed
                queues.done.put(FinishedPlan(number, plan, recording, result))
            queues.done.put(None)
    except Exception as error:  # passed on to the thread that can report it
        queues.done.put(error)


def _examine(
    plan: Plan, machine: Machine, recording: Path, progress: Progress, memo: OpinionMemo | None = None
) -> Examination:
    """Examine the plan. The `recording` stays; after a failure no part of it stays."""
    reported = 0

    def report(recoveries: int) -> None:
        nonlocal reported
        progress.recoveries(recoveries - reported)
        reported = recoveries

    try:
        examination = examine(machine, plan, recording, report, memo)
    except BaseException:
        for part in recording.parent.glob(f"{recording.name}*"):
            part.unlink(missing_ok=True)
        raise
    report(examination.recoveries)
    return examination
