"""Compare two kernels: run one workload on both, and find outcomes of one kernel that the other never shows.

No specification is needed. An outcome is what a recovery shows: every name, type, mode, size, link, attribute and byte.
If a recovery left contents open, each of their versions is compared. Other judges look at the kernel's log.

The reference's outcomes do not depend on the kernel that is compared with it. So the store keeps them for later
comparisons with the same reference.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from postcrash.harness.errors import CrashDiskEndedError, HarnessError, LostAtWork, OperationFailedError
from postcrash.harness.examination.campaign import ResultStore
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import BOTH_DISKS
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.examination.result import Examination
from postcrash.harness.expectations.outcome_comparison import (
    OutcomeMetadata,
    metadata_of,
    of_bytes,
    of_names,
    strange_parts,
)
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import Entry, History, Observation, ObservationError, Tree, Verdict, Workload
from postcrash.model.agreement import is_version_of
from postcrash.model.exit_status import why_boot_stops, why_not_repaired
from postcrash.model.judge import INSTANT, Opinion
from postcrash.model.operation import Naming
from postcrash.model.wire_observation import report_of_tree
from postcrash.store.json_codec import Json
from postcrash.store.kernel_build import ComparedWith
from postcrash.store.records import COMPARED
from postcrash.store.store import Store

RUNS_MAX = 3
"""An outcome counts as never shown after this many runs of the workload, because recordings may vary."""
_OTHER, _STALE = "other", "stale"


class ReferenceOutcomes:
    """The outcomes of one workload that a kernel has shown, by instant. `unknown` says why some may be missing."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], dict[OutcomeMetadata, list[Observation]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.unknown = ""

    def add(self, history: History, observation: Observation) -> None:
        """Add an outcome."""
        self._seen[history.started, history.returned][metadata_of(observation)].append(observation)

    def has(self, history: History, observation: Observation) -> bool:
        """Whether the kernel has shown the outcome, with these versions of open contents."""
        return any(not _differ_in_hash(observation.tree, known) for known in self._alike(history, observation))

    def varies(self, history: History, observation: Observation) -> bool:
        """Whether the kernel has shown the outcome but for bytes of unknown origin, and varies in these itself."""
        first, *others = [*self._alike(history, observation)] or [observation.tree]
        return any(_differ_in_hash(first, other) for other in others)

    def _alike(self, history: History, observation: Observation) -> Iterator[Tree]:
        """Trees that the kernel has shown and that differ from the outcome in bytes of unknown origin at most."""
        for known in self._seen[history.started, history.returned].get(metadata_of(observation), ()):
            if is_version_of(observation.tree, known.tree):
                yield known.tree

    def differences(self, history: History, observation: Observation) -> list[str]:
        """In words: how the outcome differs from the nearest one that the kernel has shown."""
        mine, nearest = metadata_of(observation), self._nearest_metadata(history, observation)
        if nearest is None:
            return ["there is no such instant"]
        if mine.mount_errno != nearest.mount_errno:
            return [f"mounting fails with errno {mine.mount_errno}" if mine.mount_errno else "it mounts"]
        if mine.aged != nearest.aged:
            return [f"of the files that fill the aged image, {mine.aged or 'nothing is wrong'}"]
        if any(self._alike(history, observation)):
            return ["a file has other bytes of unknown origin"]
        if mine == nearest:
            known = [each.tree for each in self._seen[history.started, history.returned][nearest]]
            return of_bytes(history.workload, observation.tree, known)
        return of_names(mine, nearest, _removed(history))

    def nearest(self, history: History, observation: Observation) -> Observation | None:
        """The outcome at this instant that `differences` compares with. None if the kernel has shown none there."""
        metadata = self._nearest_metadata(history, observation)
        if metadata is None:
            return None
        known = self._seen[history.started, history.returned][metadata]
        if metadata != metadata_of(observation):
            return known[0]
        return min(known, key=lambda each: len(strange_parts(observation.tree, each.tree)))

    def _nearest_metadata(self, history: History, observation: Observation) -> OutcomeMetadata | None:
        """The metadata of the nearest outcome. None if there is no outcome at the instant."""
        mine = set(metadata_of(observation).names)
        seen = self._seen.get((history.started, history.returned), {})
        return min(seen, key=lambda theirs: (len(mine ^ set(theirs.names)), repr(theirs)), default=None)


def _removed(history: History) -> set[str]:
    """The names that operations had taken away, or were about to."""
    begun = history.workload.operations[: history.started]
    return {each.path for each in begun if each.form.naming in (Naming.REMOVE, Naming.MOVE)}


def _differ_in_hash(found: Tree, known: Tree) -> bool:
    """Whether a file has bytes of unknown origin in both trees, and not the same ones.

    The trees have the same names. Hashes tell, where the kernel has read the whole file in both recoveries.
    """
    hashes = ((_hash(found[path]), _hash(known[path])) for path in found)
    return any(mine and theirs and mine != theirs for mine, theirs in hashes)


def _hash(entry: Entry) -> str:
    """The hash of a settled file with bytes of unknown origin; empty if it cannot be compared.

    The filler of free space depends on the place on the disk, which may be another one in each run.
    """
    sources = {segment.source for segment in entry.segments}
    return entry.hash if _OTHER in sources and _STALE not in sources and not entry.choices else ""


@dataclass(frozen=True, slots=True)
class _Collector:
    """A judge that objects to nothing and remembers every outcome that a person would come to see."""

    shown: ReferenceOutcomes

    name = "shown"
    version = ""
    depends_on = INSTANT
    looks_at = ("walk",)

    def check(self, history: History, observation: Observation) -> Opinion:
        if not (reason := why_boot_stops(observation)):
            self.shown.add(history, observation)
        is_aborted = observation.repair is not None and why_not_repaired(observation.repair)
        return Opinion(Verdict.UNDECIDED if is_aborted else Verdict.HOLDS, True, reason)

    def take(self, known: Examination, workload: Workload) -> None:
        """Remember what an earlier run has shown. A report that is broken was no outcome then either."""
        for certificate in known.certificates:
            histories = [History(workload, each.started, each.returned) for each in certificate.instants]
            for outcome in certificate.outcomes if certificate.recover.shows(self.looks_at) else ():
                with suppress(ObservationError):
                    if outcome.observation is not None:
                        observation = Observation.from_wire(outcome.observation)
                        for history in histories:
                            self.check(history, observation)


@dataclass(frozen=True)
class Reference:
    """The other kernel, or the same one with another target. `name` asks for it (`kernel:7.2`).

    plan      what is done there with each workload; the workload, the judges and the disk are put in later
    settings  of guests with that kernel
    store     keeps what it shows
    """

    name: str
    plan: Plan
    settings: MachineSettings
    store: Store


@dataclass(eq=False)
class DifferenceJudge:
    """Objects to outcomes that the reference never shows. Use it in a `with` statement: it has guests of its own."""

    reference: Reference
    _own: threading.local = field(default_factory=threading.local)
    _guests: ExitStack = field(default_factory=ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stops: int = 0

    depends_on = INSTANT
    looks_at = ("walk",)

    def __enter__(self) -> "DifferenceJudge":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def name(self) -> str:
        """See `Judge`."""
        return f"{COMPARED}{self.reference.name}"

    @property
    def version(self) -> str:
        """See `Judge`: the guest, target and base image that it compares with."""
        plan = self.reference.plan
        return f"{plan.guest} {plan.target.digest()} {plan.base.id}"

    @property
    def compared(self) -> ComparedWith:
        """See `Comparison`."""
        plan = self.reference.plan
        return ComparedWith(plan.kernel, plan.guest, plan.built, plan.target.digest())

    @property
    def recorder(self) -> str:
        """See `Comparison`."""
        return self.reference.plan.how.recorder

    def check(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        if reason := why_boot_stops(observation):
            return Opinion(Verdict.UNDECIDED, True, reason)
        shown = ReferenceOutcomes()
        for shown in self._runs(history.workload):
            if shown.has(history, observation):
                return Opinion(Verdict.HOLDS, True, "")
            if shown.unknown:
                return Opinion(Verdict.UNDECIDED, True, f"{self.reference.name}: {shown.unknown}")
        if shown.varies(history, observation):
            varying = "shows this with other bytes of unknown origin, which vary there"
            return Opinion(Verdict.UNDECIDED, True, f"{self.reference.name} {varying}")
        differences = ", ".join(shown.differences(history, observation))
        return Opinion(Verdict.VIOLATED, True, f"{differences}; {self.reference.name} never shows this")

    def nearest(self, history: History, observation: Observation) -> Json | None:
        """See `Comparison`."""
        *_, shown = self._runs(history.workload)
        found = shown.nearest(history, observation)
        return None if found is None else report_of_tree(found)

    def stop(self) -> None:
        """See `Comparison`."""
        with self._lock:
            self._stops += 1
            guests = self._guests.pop_all()
        guests.close()

    def why_no_change(self, workload: Workload, lost: LostAtWork | None) -> str:
        """See `Comparison`. A guest that the reference loses at a later instant of the run is no excuse."""
        reasons = self._why_not_recovered(workload) if lost is None else self._why_not_run(workload, lost)
        return next((f"{self.reference.name}: {reason}" for reason in reasons), "")

    def _why_not_recovered(self, workload: Workload) -> Iterator[str]:
        return (shown.unknown for shown in self._runs(workload) if shown.unknown)

    def _why_not_run(self, workload: Workload, lost: LostAtWork) -> Iterator[str]:
        for plan in [*self._plans(workload, ReferenceOutcomes())] * RUNS_MAX:
            result = self._examined(replace(plan, recoveries=()))
            if isinstance(result, HarnessError):
                yield str(result)
                continue
            if not result.recording:
                yield from result.notes
            for found in result.findings:
                if (found.started, found.returned) <= (lost.started, lost.returned):
                    yield f"its guest is lost too, {found.message}: what comes after is not compared"

    def what_instead(self, workload: Workload, held: int | None, failed: OperationFailedError) -> str:
        """See `Comparison`."""
        plan = self._plan(workload, ReferenceOutcomes(), held)
        result, name = self._examined(replace(plan, recoveries=())), self.reference.name
        if isinstance(result, OperationFailedError):
            is_same = (result.number, result.errno) == (failed.number, failed.errno)
            return "" if is_same else f"on {name} {result}"
        if isinstance(result, HarnessError):
            return f"on {name} {result}"
        is_whole = result.recording and not result.findings
        return f"{name} runs it" if is_whole else f"on {name} the workload does not come to its end"

    def _runs(self, workload: Workload) -> Iterator[ReferenceOutcomes]:
        """The reference's outcomes, after one more run each time. The outcomes of the last workload are remembered."""
        if getattr(self._own, "workload", None) != workload:
            self._own.workload, self._own.shown, self._own.runs = workload, ReferenceOutcomes(), 0
        if self._own.runs:
            yield self._own.shown
        while self._own.runs < RUNS_MAX:
            self._own.runs += 1
            self._run(workload, self._own.shown, self._own.runs)
            yield self._own.shown

    def _run(self, workload: Workload, shown: ReferenceOutcomes, number: int) -> None:
        """Add the outcomes of the `number`-th run of the workload."""
        for plan in self._plans(workload, shown):
            result = self._known_or_examined(replace(plan, recording=number), shown)
            if isinstance(result, HarnessError):
                shown.unknown = str(result)
                return
            if result.verdict is not Verdict.HOLDS:
                shown.unknown = next((each.reason for each in result.rulings.values() if each.reason), "undecided")

    def _plans(self, workload: Workload, shown: ReferenceOutcomes) -> Iterator[Plan]:
        """One run of the workload on each disk."""
        for held in dict.fromkeys((*BOTH_DISKS, self.reference.plan.how.held)):
            yield self._plan(workload, shown, held)

    def _plan(self, workload: Workload, shown: ReferenceOutcomes, held: int | None) -> Plan:
        """A run of the workload on the disk `held`."""
        how = replace(self.reference.plan.how, held=held)
        return replace(self.reference.plan, workload=workload, how=how, judges=(_Collector(shown),))

    def _known_or_examined(self, plan: Plan, shown: ReferenceOutcomes) -> Examination | HarnessError:
        """The reference's examination, from the store if it is there. Its outcomes are added to `shown`."""
        kept = ResultStore(self.reference.store, "reference")
        if (known := kept.examination(plan)) is not None:
            _Collector(shown).take(known, plan.workload)
            return known
        result = self._examined(plan)
        is_whole = isinstance(result, Examination) and result.verdict is Verdict.HOLDS
        if isinstance(result, Examination) and result.recording and is_whole:  # what is open may be decided later
            certificates = [replace(each, executions=()) for each in result.certificates]
            kept.put(kept.key(plan), replace(result, certificates=certificates).to_json())
            kept.flush()
        return result

    def _examined(self, plan: Plan) -> Examination | HarnessError:
        """The reference's examination, or why there is none."""
        with scratch() as folder:
            try:
                return examine(self._machine(), plan, Path(folder, "run.pcr"), lambda _: None)
            except CrashDiskEndedError as error:
                self._own.__dict__.pop("machine", None)  # there is none if it ended while it started
                return error
            except OperationFailedError as error:
                return error

    def _machine(self) -> Machine:
        """The machine of this thread."""
        if not hasattr(self._own, "machine"):
            machine = Machine(settings_for_recorders(self.reference.settings, [self.reference.plan.how.recorder]))
            with self._lock:
                self._guests.callback(machine.close)
                stops = self._own.__dict__.setdefault("stops", self._stops)
                is_stopped = stops != self._stops
            if is_stopped:
                machine.close()
                raise CrashDiskEndedError("the comparison was stopped")
            machine.boot()
            self._own.machine = machine
        return self._own.machine  # type: ignore[no-any-return]
