"""Machines that only pretend, for hunts."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from postcrash._core import Recording, write_recording
from postcrash.harness.errors import OperationFailedError
from postcrash.harness.examination.campaign import Batch, Crew, FinishedPlan
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination, Ruling
from postcrash.harness.guests.machine import MachineSettings
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Plans, Probe
from postcrash.model import Verdict, Workload, parse_workload
from postcrash.reports.explanation import explanation
from postcrash.store.records import Finding, recording_id
from postcrash.targets import BaseImage, target_named
from postcrash.workloads import GRAMMARS, WorkloadSpace

from ..examination.conftest import RECOVER, interval_report

SPACE = WorkloadSpace(GRAMMARS["ace"], 1)
DEFAULT = Exploration().budget
CREW = Crew(MachineSettings(Path("kernel"), Path("root")), 1)
Behaviour = Callable[[Workload], list[str] | OperationFailedError]


class Silent:
    """A progress display that nobody watches. It remembers what it was told."""

    def __init__(self) -> None:
        self.told = list[str]()

    def recoveries(self, count: int) -> None: ...
    def skipped(self) -> None: ...
    def finished(self, plan: Plan, examination: Examination) -> None: ...

    def found(self, finding: Finding) -> None:
        self.told.append(finding.id)


def plan(folder: Path) -> Plan:
    base = folder / "base.img"
    base.write_bytes(bytes(4096))
    return Plan(
        target=target_named("ext4-current"),
        base=BaseImage(base, "b-0123456789abcdef"),
        kernel="kernel",
        guest="guest",
        workload=parse_workload("sync", "none"),
        judges=(),
        recoveries=(RECOVER,),
        how=Exploration(),
        explainer=explanation,
    )


def walks(folder: Path) -> Plans:
    """The plans of a hunt that has no other probe."""
    return {Probe.WALK: plan(folder)}


def found(plan: Plan, message: str, recording: str) -> Finding:
    text, model = plan.workload.to_text(), plan.how.model
    id = plan.finding_id("durability", message, RECOVER, within_recovery=False)
    return Finding(
        id=id,
        checker="durability",
        message=message,
        target=plan.target.name,
        kernel=plan.kernel,
        model=model,
        workload_name=plan.workload.name,
        workload_text=text,
        recording=recording,
        base=plan.base.id,
        state=f"{recording}/0/-",
        interval=0,
        choices=(),
        lost=(),
        torn=0,
        started=0,
        returned=0,
        observation={},
        casualty=None,
        recover=RECOVER.to_wire(),
    )


class Pretence:
    """Stands in for machines: each workload takes one recovery and is found to be as `behaviour` says."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour, self.ran = behaviour, list[str]()
        self.relevant = True
        self.states: Callable[[Workload], int] = lambda _workload: 4
        """How many recoveries, and crash states, a workload has."""
        self.looks = list[int | None]()
        """The `first_look` of each plan."""

    def __call__(
        self,
        todo: Iterable[Batch],
        crew: Crew,
        scratch: Callable[[], Path],
        progress: object,
        until: float | None = None,
    ) -> Iterator[FinishedPlan]:
        for number, each in chain.from_iterable(todo):
            self.ran.append(each.workload.name)
            self.looks.append(each.first_look)
            try:
                said = self.behaviour(each.workload)
            except TimeoutError:  # the machine is given up
                return
            path = scratch()
            if isinstance(said, OperationFailedError):
                yield FinishedPlan(number, each, path, said)
                continue
            recording = "r-clean"
            if said:
                write_recording(path, 8, json.dumps(each.workload.name), [("durable",)])
                recording = recording_id(Recording(path).digest)
            states = self.states(each.workload)
            stop = each.enough if said and each.enough is not None else each.first_look
            covered = min(states, stop or states)
            result = Examination(
                recording, each.base.id, each.how.model, each.kernel, states=states, covered=covered, recoveries=1
            )
            result.findings = [found(each, message, recording) for message in said]
            result.rulings["durability"] = Ruling(Verdict.VIOLATED if said else Verdict.HOLDS, self.relevant)
            if covered < states:
                spent = "the recoveries of the budget are spent"
                result.undecided(f"crash interval 1: {covered} of {states} crash states; {spent}")
            result.is_cut_short = bool(said) and each.enough is not None and covered < states
            result.certificates = [Certificate.of(interval_report(), RECOVER)]
            done = FinishedPlan(number, each, path, result)
            yield done
            done.remove()


Run = Callable[..., tuple[HuntResult, list[str]]]


def clean(_workload: Workload) -> list[str]:
    return []


def renames_break(workload: Workload) -> list[str]:
    renames = [operation for operation in workload.operations if operation.word == "rename"]
    return [f"{renames[0].to} is missing"] if renames else []
