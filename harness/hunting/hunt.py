"""Hunting: explore every crash state of each of many workloads on one target, and group findings by their cause.

A hunt is large, so only the counts of workloads without findings are kept. The recording of the simplest workload of
each group is kept. Other recordings can be made again, and may then differ a little (docs/exploration.md).
"""

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from postcrash.harness.budget import is_over
from postcrash.harness.errors import OperationFailedError, errno_name, is_unsupported
from postcrash.harness.examination.campaign import (
    Batch,
    Crew,
    FinishedPlan,
    Progress,
    ResultStore,
    examination_in,
    examine_all,
)
from postcrash.harness.examination.coverage import common_reason
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.examination.support import WORKS_ELSEWHERE, Support
from postcrash.harness.files.output import kept_evidence
from postcrash.harness.files.places import quick_folder
from postcrash.harness.files.scratch import scratch
from postcrash.harness.hunting.causes import Cause, cause_of, without_numbers
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Plans, Probe
from postcrash.model import Workload
from postcrash.model.operation import Variant
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding
from postcrash.store.store import Store


class HuntProgress(Progress, Protocol):
    """Shows how a hunt gets on."""

    def skipped(self) -> None:
        """One more workload is not run, because another one stands for it or the file system cannot run it."""
        ...

    def found(self, finding: Finding) -> None:
        """The first finding of a group was found. The store has it already."""
        ...


_RUN = "run"
"""Marks a workload that could be run."""
_REFUSED = "refused"
"""Marks a workload that could not be run on one of the disks."""
_CUT_SHORT = "cut short"
"""Marks a workload that was not explored to the end because it is violated."""


class WorkloadSelection(Protocol):
    """The `count` of workloads (None: no end), and the `disks` of each, as `Exploration.held` says them."""

    @property
    def disks(self) -> tuple[int | None, ...]: ...
    @property
    def count(self) -> int | None: ...


Selected = TypeVar("Selected", bound=WorkloadSelection)


@dataclass(frozen=True, slots=True)
class HuntContext:
    """What a hunt works with, whatever its workloads.

    plans  the plan of each workload, by the probe. Only the default hunt has other probes than `Probe.WALK`
    fresh  results of the store are not reused
    until  the hunt ends when the monotonic clock reaches it
    """

    plans: Plans
    store: Store
    progress: HuntProgress
    fresh: bool = False
    until: float | None = None


class Hunt(ABC, Generic[Selected]):
    """Examines workloads and counts the results. Each kind of hunt chooses the next of the selected workloads."""

    def __init__(self, selection: Selected, context: HuntContext) -> None:
        self._selection, self._disks = selection, selection.disks
        self._plans, self._plan = context.plans, context.plans[Probe.WALK]
        self._progress, self._until = context.progress, context.until
        self._results = ResultStore(context.store, "hunt", fresh=context.fresh)
        """Keys of hunts are their own, because hunts keep less of a result than campaigns."""
        self._hunt_result = HuntResult()
        self._reached = 0
        """The number of selected workloads so far, with those that were left out."""
        self._probes: dict[int, Probe] = {}
        """How each workload of a space is looked at. Other workloads are walked."""
        self._unfinished: set[int] = set()
        """Workloads that have been started and not yet examined on all disks."""
        self._counted: dict[int, set[object]] = {}
        """What was counted already for each workload that has not been run on all disks."""
        self._kept: defaultdict[int, set[Cause]] = defaultdict(set)
        """For each workload that has not been run on all disks, the causes of which the store keeps a finding."""
        self._lacking: dict[int, list[tuple[str, Variant]]] = {}
        """Lacking operations of each workload that has not been run on all disks."""
        self._all_lacking: Counter[tuple[str, Variant]] = Counter()
        """The same for all others, with the number of workloads."""
        self._support = Support()
        self._noted: set[tuple[str, int]] = set()
        """Operations that failed, with their errno."""
        self._disks_done: Counter[int] = Counter()

    @abstractmethod
    def _new_workloads(self) -> Iterator[tuple[int, Workload]]:
        """Workloads with their numbers, as machines become free. It ends when the time is over."""

    def _not_run(self) -> int:
        """The number of selected workloads that were not run."""
        return (self._selection.count or 0) - self._reached + len(self._unfinished)

    @property
    def _is_over(self) -> bool:
        return is_over(self._until)

    def run(self, crew: Crew) -> HuntResult:
        """Hunt, and return the result."""
        try:
            with scratch(quick_folder()) as folder:
                numbers = itertools.count()

                def recording() -> Path:
                    return folder / f"{next(numbers)}.pcr"

                for todo in self._rounds():
                    for done in examine_all(todo, crew, recording, self._progress, until=self._until):
                        self._done(done)
                        if self._results.is_flush_due:
                            self._flush()
        except KeyboardInterrupt:
            self._hunt_result.interrupted = True
        finally:
            self._flush()
        self._end()
        self._reclassify_lacking()
        self._hunt_result.not_run = self._not_run()
        return self._hunt_result

    def _rounds(self) -> Iterator[Iterable[Batch]]:
        """Batches in rounds. A round begins when all results of the one before have been counted."""
        yield self._todo()

    def _end(self) -> None:
        """Called after the last round, also if the hunt is interrupted or its time is over."""

    def _todo(self) -> Iterator[Batch]:
        """A batch for each workload with the plans that have no result in the store. Results in the store count."""
        for number, workload in self._new_workloads():
            batch = [(number, plan) for plan in self._plans_of(number, workload) if not self._is_known(number, plan)]
            if batch:
                self._unfinished.add(number)
                yield batch

    def _probe_of(self, number: int) -> Probe:
        return self._probes.get(number, Probe.WALK)

    def _disks_of(self, number: int) -> tuple[int | None, ...]:
        """The disks on which a workload is run. What is not walked is run on the first one only."""
        return self._disks if self._probe_of(number) is Probe.WALK else self._disks[:1]

    def _plans_of(self, number: int, workload: Workload) -> Iterator[Plan]:
        """One plan for each disk."""
        plan = self._plans[self._probe_of(number)]
        seed = plan.how.seed ^ int.from_bytes(digest(workload.to_text())[:8], "big")
        for held in self._disks_of(number):
            yield replace(plan, workload=workload, how=replace(plan.how, seed=seed, held=held))

    def _is_known(self, number: int, plan: Plan) -> bool:
        """Count the plan's result if it is in the store. False if the store lacks something that is needed."""
        row = self._results.row(self._results.key(plan))
        if row is None:
            return False
        if not self._add_known_findings(number, plan, row):
            return False
        if "lacking" in row:
            self._count_refused(number, **row["lacking"])
            self._disk_done(number)
            return True
        result = examination_in({**row, "findings": []}, self._results.store)
        self._count(number, plan, result)
        self._disk_done(number)
        return True

    def _add_known_findings(self, number: int, plan: Plan, row: Json) -> bool:
        """Add the findings of a row of the store to their groups. False if the store lacks one that is needed."""
        size = _size(number, plan)
        causes = [(Cause.from_json(each), each["finding"], each["kept"]) for each in row.get("causes", ())]
        if any(not kept and self._hunt_result.is_better(cause, size) for cause, _, kept in causes):
            return False
        for cause, finding, _ in causes:
            self._add_finding(cause, size, finding, plan)
        self._kept[number].update(cause for cause, _, kept in causes if kept)
        return True

    def _done(self, done: FinishedPlan) -> None:
        self._add(done)
        self._disk_done(done.number)

    def _add(self, done: FinishedPlan) -> None:
        """Count a result, and keep what the store is to have of it."""
        key = self._results.key(done.plan)
        if isinstance(done.result, OperationFailedError):
            failed = {name: getattr(done.result, name) for name in ("operation", "errno", "variant", "unlike")}
            self._note_failure(done.result)
            if done.result.is_unsupported:  # what fails otherwise is tried again in a later run
                self._results.put(key, {"lacking": failed, "findings": [], "certificates": []})
            self._count_refused(done.number, **failed)
            return
        self._results.keep_consoles(done)
        self._count(done.number, done.plan, done.result)
        self._keep(done, done.result, key)

    def _keep(self, done: FinishedPlan, result: Examination, key: str) -> None:
        """Add the findings of a plan's result to their groups, and keep what the store is to have of it."""
        size = _size(done.number, done.plan)
        causes: list[Json] = []
        kept: list[Finding] = []
        firsts: list[Finding] = []
        for finding in result.findings:
            cause = cause_of(finding)
            is_better = self._hunt_result.is_better(cause, size) or cause in self._kept[done.number]
            kept += [finding] * is_better
            firsts += [finding] * (cause not in self._hunt_result.groups)
            causes.append({**cause.to_json(), "finding": finding.id, "kept": is_better})
            self._add_finding(cause, size, finding.id, done.plan)
        self._kept[done.number].update(cause_of(finding) for finding in kept)
        if kept:
            self._results.keep_recordings(done)
        row = {**result.to_json(), "findings": [finding.id for finding in kept], "causes": causes}
        if result.recording:  # a workload that could not be recorded is tried again in a later run
            self._results.put(key, row if kept else {**row, "certificates": []}, kept)
        if firsts:
            self._flush()
        for finding in firsts:
            self._progress.found(finding)

    def _note_failure(self, failed: OperationFailedError) -> None:
        """Note the guest's error, once for each kind of failure, unless the file system lacks the operation."""
        kind = (failed.operation, failed.errno)
        if not failed.is_unsupported and kind not in self._noted:
            self._noted.add(kind)
            console = f"; {kept_evidence(self._results.store.folder, failed)}" if failed.evidence else ""
            self._hunt_result.notes.append(f"{failed}{console}")

    def _count_refused(self, number: int, operation: str, errno: int, variant: Iterable[Any], unlike: str) -> None:
        reason = f"{operation} fails with {errno_name(errno)}" + f", but {unlike}" * bool(unlike)
        if self._is_first(f"refused: {reason}", number):
            if is_unsupported(operation, errno) and not unlike:
                self._lacking.setdefault(number, []).append((reason, tuple(variant)))
            else:
                self._hunt_result.refused[reason] += 1
        if self._is_first(_REFUSED, number):
            self._progress.skipped()

    def _count(self, number: int, plan: Plan, result: Examination) -> None:
        if self._is_first(_RUN, number):
            self._progress.finished(plan, result)
            self._support.ran(plan.workload)
        self._hunt_result.counts.update(result.counts)
        self._hunt_result.notes += result.notes
        for name, ruling in result.rulings.items():
            if ruling.relevant and self._is_first(f"tested {name}", number):
                self._hunt_result.tested[name] += 1
        if result.is_cut_short:
            self._hunt_result.cut_short += self._is_first(_CUT_SHORT, number)
            return
        for pattern, (judges, words) in _undecided(result).items():
            if self._is_first(("undecided", judges, pattern), number):
                self._hunt_result.leave_open(judges, pattern, words, _size(number, plan))

    def _add_finding(self, cause: Cause, size: tuple[int, int], finding: str, plan: Plan) -> None:
        if self._is_first(cause, size[1]):
            self._hunt_result.found(cause, size, finding, plan.workload.name)

    def _is_first(self, what: object, number: int) -> bool:
        """Whether `what` is new for this workload. Something that happens on several disks counts once."""
        counted = self._counted.setdefault(number, set())
        is_first = what not in counted
        counted.add(what)
        return is_first

    def _disk_done(self, number: int) -> None:
        self._disks_done[number] += 1
        if self._disks_done[number] == len(self._disks_of(number)):
            counted = self._counted.pop(number)
            self._kept.pop(number, None)
            self._hunt_result.run += _RUN in counted and _REFUSED not in counted
            self._count_lacking(number, is_run=_RUN in counted)
            del self._disks_done[number]
            self._unfinished.discard(number)

    def _count_lacking(self, number: int, *, is_run: bool) -> None:
        """Count what the file system lacks for a workload. If it ran on another disk, it lacks nothing there."""
        for reason, variant in self._lacking.pop(number, ()):
            if is_run:
                self._hunt_result.refused[f"{reason} on one disk only"] += 1
            else:
                self._hunt_result.lacking[reason] += 1
                self._all_lacking[reason, variant] += 1

    def _reclassify_lacking(self) -> None:
        """Count workloads as refused if the operation that seemed to be lacking ran in another workload."""
        for (reason, variant), count in self._all_lacking.items():
            if self._support.has(variant):
                self._hunt_result.lacking[reason] -= count
                self._hunt_result.refused[f"{reason}, but {WORKS_ELSEWHERE}"] += count
        self._hunt_result.lacking = +self._hunt_result.lacking

    def _flush(self) -> None:
        self._results.flush()


def _undecided(result: Examination) -> dict[str, tuple[str, str]]:
    """Why judges could not decide, without numbers, each with the names of these judges and an example in full.

    A judge that objects to one crash state may have been unable to tell of another one, and of a third one for another
    reason.
    """
    judges: dict[str, list[str]] = {}
    examples: dict[str, str] = {}
    for name, ruling in result.rulings.items():
        for words in map(common_reason, ruling.open_questions):
            why = without_numbers(words)
            examples.setdefault(why, words)
            if name not in judges.setdefault(why, []):
                judges[why].append(name)
    every = len(result.rulings)
    named = {why: "all judges" if len(names) == every > 1 else ", ".join(names) for why, names in judges.items()}
    return {why: (names, examples[why]) for why, names in named.items()}


def _size(number: int, plan: Plan) -> tuple[int, int]:
    return len(plan.workload.operations), number


def digest(text: str) -> bytes:
    """A short digest that identifies a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
