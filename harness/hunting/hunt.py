"""Hunting: explore every crash state of every workload of a space on one target, and group findings by their cause.

A hunt is large, so only counts are kept of a workload without findings. Of each group, the simplest workload is kept
with its recording. Recordings are the same in every run, so any other recording can be made again.
"""

import hashlib
import itertools
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from errno import EOPNOTSUPP, errorcode
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from postcrash.harness.errors import OperationFailedError
from postcrash.harness.examination.campaign import (
    Batch,
    Crew,
    FinishedPlan,
    Progress,
    examination_in,
    examine_all,
    keep_consoles,
    keep_recordings,
    tool_digest,
)
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import COUNTS, Examination
from postcrash.harness.hunting.causes import Cause, cause_of, without_numbers
from postcrash.harness.places import quick_folder
from postcrash.harness.scratch import scratch
from postcrash.model import Verdict, Workload
from postcrash.reports.store.plain import Json
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import Store
from postcrash.workloads import WorkloadSpace, canonical

NAMES_MAX = 20
"""The most workloads of a group that are named."""
BATCH_MAX = 256
BATCH_SECONDS = 2.0
"""Results are put into the store together: at most this many, and after at most this many seconds."""
_COUNTS = ("states", "covered", "states_within", "covered_within", *COUNTS)


class HuntProgress(Progress, Protocol):
    """Is told how a hunt gets on."""

    def skipped(self) -> None:
        """One more workload is not run, because another one stands for it or the file system cannot run it."""
        ...

    def found(self, finding: Finding) -> None:
        """The first finding of a group was found. The store has it already."""
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Which workloads of a space are run.

    sample    only this many workloads, drawn with `seed`
    shard     (i, n): every n-th of these, beginning with the i-th; i counts from 1
    symmetry  if workloads differ only in names that mean nothing, only the first is run
    disks     each workload is run on each of these disks; they say when writes complete, as `Exploration.held` does
    """

    space: WorkloadSpace
    shard: tuple[int, int] = (1, 1)
    sample: int | None = None
    seed: int = 1
    symmetry: bool = True
    disks: tuple[int | None, ...] = (None,)

    def numbers(self) -> Sequence[int]:
        """The numbers of the selected workloads, ascending."""
        first, step = self.shard
        drawn: Sequence[int] = range(len(self.space))
        if self.sample is not None and self.sample < len(drawn):
            drawn = sorted(random.Random(self.seed).sample(drawn, self.sample))
        return drawn[first - 1 :: step]

    @property
    def count(self) -> int:
        """How many workloads are selected."""
        return len(self.numbers())


@dataclass(slots=True)
class Group:
    """Findings of one cause: the number of their workloads, some names, and the finding of the smallest workload."""

    cause: Cause
    finding: str
    size: tuple[int, int]
    """Operations and number of the smallest workload."""
    count: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class HuntResult:
    """The result of a hunt.

    run        workloads that were recorded and explored on all disks, now or before; `counts` are sums over disks
    same       workloads that are equal to another one
    alike      workloads that differ from another one only in names
    refused    reasons why workloads could not be run, with the number of workloads
    undecided  judges that could not tell, and why, with the number of workloads
    cut_short  workloads with a violation after which not all crash states were explored
    lacking    operations that the file system does not have, with the number of workloads
    tested     for each judge, the number of workloads in which it was put to the test
    not_run    workloads that there was no time for; the same hunt goes on with them
    new        for a random hunt, workloads that brought something new
    interrupted  whether the user interrupted the hunt
    """

    run: int = 0
    not_run: int = 0
    new: int = 0
    cut_short: int = 0
    interrupted: bool = False
    same: int = 0
    alike: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    tested: Counter[str] = field(default_factory=Counter)
    groups: dict[Cause, Group] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all selected workloads that the file system can run. UNDECIDED if no judge was tested."""
        if self.groups:
            return Verdict.VIOLATED
        is_left_out = self.undecided or self.cut_short or self.refused or self.not_run or self.interrupted
        is_open = is_left_out or not self.tested
        return Verdict.UNDECIDED if is_open else Verdict.HOLDS

    def is_better(self, cause: Cause, size: tuple[int, int]) -> bool:
        """Whether a finding of this cause in a workload of this size is to represent its group."""
        return cause not in self.groups or size < self.groups[cause].size

    def found(self, cause: Cause, size: tuple[int, int], finding: str, name: str) -> None:
        """Add a finding to its group."""
        group = self.groups.setdefault(cause, Group(cause, finding, size))
        if size < group.size:
            group.size, group.finding = size, finding
        group.count += 1
        if len(group.names) < NAMES_MAX:
            group.names.append(name)


def hunt(
    selection: Selection,
    plan: Plan,
    crew: Crew,
    store: Store,
    progress: HuntProgress,
    *,
    fresh: bool = False,
    until: float | None = None,
) -> HuntResult:
    """Run each selected workload in place of the workload of `plan`. Reuses results of the store unless `fresh`.

    The hunt ends early if it is interrupted or the monotonic clock reaches `until`. What was finished is in the store.
    """
    return _SpaceHunt(selection, plan, store, progress, fresh, until).run(crew)


_RUN = "run"
"""Noted for a workload that could be run."""
_CUT_SHORT = "cut short"
"""Noted for a workload that was not explored to the end because it is violated."""


class Disks(Protocol):
    """Workloads to be run, each on all `disks`, which say when writes complete, as `Exploration.held` does."""

    @property
    def disks(self) -> tuple[int | None, ...]: ...


Selected = TypeVar("Selected", bound=Disks)


class Hunt(ABC, Generic[Selected]):
    """What all hunts do with their workloads. Each kind of hunt chooses the next of the selected workloads."""

    def __init__(
        self,
        selection: Selected,
        plan: Plan,
        store: Store,
        progress: HuntProgress,
        fresh: bool,
        until: float | None,
    ) -> None:
        self._selection, self._disks = selection, selection.disks
        self._plan, self._store, self._progress = plan, store, progress
        self._fresh, self._until = fresh, until
        self._hunted = HuntResult()
        self._open: set[int] = set()
        """Workloads that have been started and not yet examined on all disks."""
        self._batch: dict[str, Json] = {}
        self._findings: list[Finding] = []
        self._told: dict[int, set[object]] = {}
        """What was counted already for each workload that has not been run on all disks."""
        self._disks_done: Counter[int] = Counter()
        self._flushed = time.monotonic()

    @abstractmethod
    def _distinct(self) -> Iterator[tuple[int, Workload]]:
        """Workloads with their numbers, as machines become free. It ends when the time is over."""

    @abstractmethod
    def _not_run(self) -> int:
        """The number of selected workloads that were not run."""

    @property
    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def run(self, crew: Crew) -> HuntResult:
        """Hunt, and return the result."""
        try:
            with scratch(quick_folder()) as folder:
                numbers = itertools.count()
                for done in examine_all(
                    *(self._todo(), crew, lambda: Path(folder, f"{next(numbers)}.pcr"), self._progress),
                    until=self._until,
                ):
                    self._done(done)
                    if len(self._batch) >= BATCH_MAX or time.monotonic() - self._flushed > BATCH_SECONDS:
                        self._flush()
        except KeyboardInterrupt:
            self._hunted.interrupted = True
        finally:
            self._flush()
        self._hunted.not_run = self._not_run()
        return self._hunted

    def _todo(self) -> Iterator[Batch]:
        """A batch for each workload with the plans that have no result in the store. Results in the store count."""
        for number, workload in self._distinct():
            batch = [(number, plan) for plan in self._plans(workload) if not self._is_known(number, plan)]
            if batch:
                self._open.add(number)
                yield batch

    def _plans(self, workload: Workload) -> Iterator[Plan]:
        """One plan for each disk."""
        how = self._plan.how
        seed = how.seed ^ int.from_bytes(_digest(workload.to_text())[:8], "big")
        for held in self._disks:
            yield replace(self._plan, workload=workload, how=replace(how, seed=seed, held=held))

    def _is_known(self, number: int, plan: Plan) -> bool:
        row = None if self._fresh else self._store.get_run(_key(plan))
        return row is not None and self._known(number, plan, row)

    def _known(self, number: int, plan: Plan, row: Json) -> bool:
        """Count a result of the store. False if the store lacks something that is needed."""
        size = _size(number, plan)
        causes = [(Cause.from_json(each), each["finding"], each["kept"]) for each in row.get("causes", ())]
        if any(not kept and self._hunted.is_better(cause, size) for cause, _, kept in causes):
            return False
        if "refused" in row:
            self._refused(number, row["refused"]["operation"], row["refused"]["errno"])
            self._disk_done(number)
            return True
        result = examination_in({**row, "findings": []}, self._store)
        self._count(number, plan, result)
        for cause, finding, _ in causes:
            self._found(cause, size, finding, plan)
        self._disk_done(number)
        return True

    def _done(self, done: FinishedPlan) -> None:
        self._take(done)
        self._disk_done(done.number)

    def _take(self, done: FinishedPlan) -> None:
        if isinstance(done.result, OperationFailedError):
            failed = {"operation": done.result.operation, "errno": done.result.errno}
            self._batch[_key(done.plan)] = {"refused": failed, "findings": [], "certificates": []}
            self._refused(done.number, done.result.operation, done.result.errno)
            return
        result, size = done.result, _size(done.number, done.plan)
        keep_consoles(done, self._store)
        self._count(done.number, done.plan, result)
        causes: list[Json] = []
        kept: list[Finding] = []
        firsts: list[Finding] = []
        for finding in result.findings:
            cause = cause_of(finding)
            is_better = self._hunted.is_better(cause, size)
            kept += [finding] * is_better
            firsts += [finding] * (cause not in self._hunted.groups)
            causes.append({**cause.to_json(), "finding": finding.id, "kept": is_better})
            self._found(cause, size, finding.id, done.plan)
        if kept:
            keep_recordings(done, self._store)
            self._findings += kept
        row = {**result.to_json(), "findings": [finding.id for finding in kept], "causes": causes}
        if result.recording:  # a workload that could not be recorded is tried again in a later run
            self._batch[_key(done.plan)] = row if kept else {**row, "certificates": []}
        if firsts:
            self._flush()
        for finding in firsts:
            self._progress.found(finding)

    def _refused(self, number: int, operation: str, errno: int) -> None:
        name = "EOPNOTSUPP" if errno == EOPNOTSUPP else errorcode.get(errno, str(errno))
        counter = self._hunted.lacking if errno == EOPNOTSUPP else self._hunted.refused
        if self._is_first("refused", number):
            counter[f"{operation} fails with {name}"] += 1
            self._progress.skipped()

    def _count(self, number: int, plan: Plan, result: Examination) -> None:
        if self._is_first(_RUN, number):
            self._progress.finished(plan, result)
        self._hunted.counts.update({name: getattr(result, name) for name in _COUNTS})
        self._hunted.notes += result.notes
        for name, ruling in result.rulings.items():
            if ruling.relevant and self._is_first(f"tested {name}", number):
                self._hunted.tested[name] += 1
        if result.is_cut_short:
            self._hunted.cut_short += self._is_first(_CUT_SHORT, number)
            return
        for reason, judges in _undecided(result).items():
            self._hunted.undecided[f"{judges}: {reason}"] += self._is_first(reason, number)

    def _found(self, cause: Cause, size: tuple[int, int], finding: str, plan: Plan) -> None:
        if self._is_first(cause, size[1]):
            self._hunted.found(cause, size, finding, plan.workload.name)

    def _is_first(self, what: object, number: int) -> bool:
        """Whether `what` is new for this workload. Something that happens on several disks counts once."""
        told = self._told.setdefault(number, set())
        is_first = what not in told
        told.add(what)
        return is_first

    def _disk_done(self, number: int) -> None:
        self._disks_done[number] += 1
        if self._disks_done[number] == len(self._disks):
            self._hunted.run += _RUN in self._told[number]
            del self._disks_done[number], self._told[number]
            self._open.discard(number)

    def _flush(self) -> None:
        if self._batch:
            self._store.put_runs(self._batch, self._findings)
        self._batch, self._findings = {}, []
        self._flushed = time.monotonic()


class _SpaceHunt(Hunt[Selection]):
    _reached = 0

    def _not_run(self) -> int:
        return len(self._selection.numbers()) - self._reached + len(self._open)

    def _distinct(self) -> Iterator[tuple[int, Workload]]:
        texts: set[bytes] = set()
        shapes: set[bytes] = set()
        for number in self._selection.numbers():
            if self._is_over:
                return
            self._reached += 1
            workload = self._selection.space.whole(number)
            text, shape = _digest(workload.to_text()), _digest(canonical(workload))
            is_new, is_first = text not in texts, shape not in shapes
            texts.add(text)
            shapes.add(shape)
            if not is_new:
                self._hunted.same += 1
            elif self._selection.symmetry and not is_first:
                self._hunted.alike += 1
            else:
                yield number, workload
                continue
            self._progress.skipped()


def _key(plan: Plan) -> str:
    """The key of the plan in the store for hunts. It differs from the plan's own key, because hunts keep less."""
    return f"hunt {plan.key(tool_digest())}"


def _undecided(result: Examination) -> dict[str, str]:
    """The reasons why judges could not tell, each with the names of these judges.

    A judge that objects to one crash state may have been unable to tell of another one, and of a third one for another
    reason.
    """
    judges: dict[str, list[str]] = {}
    for name, ruling in result.rulings.items():
        for why in dict.fromkeys(map(without_numbers, ruling.open_questions)):
            judges.setdefault(why, []).append(name)
    every = len(result.rulings)
    return {why: "all judges" if len(names) == every > 1 else ", ".join(names) for why, names in judges.items()}


def _size(number: int, plan: Plan) -> tuple[int, int]:
    return len(plan.workload.operations), number


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
