"""Hunting: every workload of a space on one target, every crash state of each; what goes wrong is grouped by its cause.

A hunt is large, so little is kept of a workload in which nothing is wrong: its counts. Of those in which something is,
the simplest of each group is kept with its recording; recordings are the same in every run, so that any other can be
made again.
"""

import hashlib
import itertools
import random
import tempfile
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
from postcrash.model import Verdict, Workload
from postcrash.reports.store.plain import Json
from postcrash.reports.store.records import Finding
from postcrash.reports.store.store import Store
from postcrash.workloads import WorkloadSpace, canonical

NAMES_MAX = 20
"""Of a group's workloads that are named."""
BATCH_MAX = 256
BATCH_SECONDS = 2.0
"""Results are put into the store together: at most so many, and at most so late."""
_COUNTS = ("states", "covered", "states_within", "covered_within", *COUNTS)


class HuntProgress(Progress, Protocol):
    """Who wants to know how a hunt gets on."""

    def skipped(self) -> None:
        """One more workload is not run: another one stands for it, or the file system cannot run it."""
        ...

    def found(self, finding: Finding) -> None:
        """The first finding of a group. The store has it already."""
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Which workloads of a space are run.

    shard     (i, n): every n-th, from the i-th on, i from 1
    sample    only so many of these, drawn with `seed`
    symmetry  of workloads that are alike but for names that mean nothing, only the first
    disks     each workload is run on each of these: when the disk completes writes, as `Exploration.held`
    """

    space: WorkloadSpace
    shard: tuple[int, int] = (1, 1)
    sample: int | None = None
    seed: int = 1
    symmetry: bool = True
    disks: tuple[int | None, ...] = (None,)

    def numbers(self) -> Sequence[int]:
        """Ascending."""
        first, step = self.shard
        mine = range(first - 1, len(self.space), step)
        if self.sample is None or self.sample >= len(mine):
            return mine
        return sorted(random.Random(self.seed).sample(mine, self.sample))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.numbers())


@dataclass(slots=True)
class Group:
    """Findings of one cause: of how many workloads, some of their names, and the finding of the smallest workload."""

    cause: Cause
    finding: str
    size: tuple[int, int]
    """Operations and number of the smallest workload."""
    count: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class HuntResult:
    """What a hunt came to.

    run        workloads that were recorded and explored on all disks, now or before; `counts` are sums over disks
    same       workloads that another one is equal to; alike: to which another one is equal but for names
    refused    why workloads could not be run, with how many
    undecided  which judges could not tell, and why, with the number of workloads
    cut_short  workloads of which not all crash states were looked at because there was a violation
    lacking    operations that the file system does not have, with how many workloads
    tested     in how many workloads each judge was put to the test
    not_run    workloads that there was no time for; the same hunt goes on with them
    new        workloads that brought something new, of a random hunt
    interrupted  by the user
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
        """On the workloads that were asked for and that the file system can run; UNDECIDED if no judge was tested."""
        if self.groups:
            return Verdict.VIOLATED
        is_left_out = self.undecided or self.cut_short or self.refused or self.not_run or self.interrupted
        is_open = is_left_out or not self.tested
        return Verdict.UNDECIDED if is_open else Verdict.HOLDS

    def is_better(self, cause: Cause, size: tuple[int, int]) -> bool:
        """Whether a finding of this cause in a workload of this size would stand for its group."""
        return cause not in self.groups or size < self.groups[cause].size

    def found(self, cause: Cause, size: tuple[int, int], finding: str, name: str) -> None:
        """Count in a finding."""
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
    """Run the selected workloads, each as `plan` says, but for its workload. Takes what the store has unless `fresh`.

    Interrupted, or when the monotonic clock says `until`, it ends with what was finished, which is in the store.
    """
    return _SpaceHunt(selection, plan, store, progress, fresh, until).run(crew)


_RUN = "run"
"""Told of a workload that could be run."""
_CUT_SHORT = "cut short"
"""Told of a workload that was not explored to the end, as it is violated."""


class Disks(Protocol):
    """Workloads to be run, each on all `disks`: when the disk completes writes, as `Exploration.held`."""

    @property
    def disks(self) -> tuple[int | None, ...]: ...


Selected = TypeVar("Selected", bound=Disks)


class Hunt(ABC, Generic[Selected]):
    """What all hunts do with their workloads. A kind of hunt says which of the selected ones come when."""

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
        """Workloads that are with machines, or that no machine has examined on all disks."""
        self._batch: dict[str, Json] = {}
        self._findings: list[Finding] = []
        self._told: dict[int, set[object]] = {}
        """What was counted of workloads that have not been run on all disks."""
        self._disks_done: Counter[int] = Counter()
        self._flushed = time.monotonic()

    @abstractmethod
    def _distinct(self) -> Iterator[tuple[int, Workload]]:
        """Workloads with their numbers, as machines get free; none when the time is over."""

    @abstractmethod
    def _not_run(self) -> int:
        """Workloads that were asked for and not run."""

    @property
    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def run(self, crew: Crew) -> HuntResult:
        """Hunt, and say what it came to."""
        try:
            with tempfile.TemporaryDirectory(prefix="postcrash-", dir=quick_folder()) as folder:
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
        """Plans that the store has no result for, a batch for each workload; those for which it has are counted in."""
        for number, workload in self._distinct():
            batch = [(number, plan) for plan in self._plans(workload) if not self._is_known(number, plan)]
            if batch:
                self._open.add(number)
                yield batch

    def _plans(self, workload: Workload) -> Iterator[Plan]:
        """One for each disk."""
        how = self._plan.how
        seed = how.seed ^ int.from_bytes(_digest(workload.to_text())[:8], "big")
        for held in self._disks:
            yield replace(self._plan, workload=workload, how=replace(how, seed=seed, held=held))

    def _is_known(self, number: int, plan: Plan) -> bool:
        row = None if self._fresh else self._store.get_run(_key(plan))
        return row is not None and self._known(number, plan, row)

    def _known(self, number: int, plan: Plan, row: Json) -> bool:
        """Count in what the store has; False if it has not all that is needed."""
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
        if result.recording:  # what could not be recorded is tried again another time
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
        """Whether it is news of this workload: what happens on several disks counts once."""
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
    """That of the plan, but for hunts, which keep less."""
    return f"hunt {plan.key(tool_digest())}"


def _undecided(result: Examination) -> dict[str, str]:
    """Why judges could not tell, and which."""
    judges: dict[str, list[str]] = {}
    for name, ruling in result.rulings.items():
        if ruling.verdict is Verdict.UNDECIDED:
            judges.setdefault(without_numbers(ruling.reason), []).append(name)
    every = len(result.rulings)
    return {why: "all judges" if len(names) == every > 1 else ", ".join(names) for why, names in judges.items()}


def _size(number: int, plan: Plan) -> tuple[int, int]:
    return len(plan.workload.operations), number


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
