"""What a hunt costs: workloads a second, and where the time goes.

One guest on one core runs bounded workloads as `postcrash hunt` does, without a store; then the command itself runs on
all cores, with one.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from rich.console import Console
from rich.table import Table

from postcrash.checkers import CHECKERS
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import Crew
from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.machine import Machine
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import History, Observation, Workload
from postcrash.model.judge import Judge, Opinion
from postcrash.reports.explanation import explanation
from postcrash.workloads import GRAMMARS, WorkloadSpace

TARGETS = ("ext4-current", "btrfs", "xfs")
P = ParamSpec("P")
R = TypeVar("R")


class Clock:
    """Seconds spent in some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timing(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, with its time counted in."""

        def timed(*arguments: P.args, **options: P.kwargs) -> R:
            started = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


class TimedMachine(Machine):
    """A machine that counts the time of recording."""

    clock = Clock()

    def record(self, *arguments: Any, **options: Any) -> Workload:
        """See `Machine.record`."""
        return self.clock.timing(super().record)(*arguments, **options)


@dataclass(frozen=True, slots=True)
class TimedJudge:
    """A judge whose time is counted."""

    judge: Judge
    clock: Clock

    @property
    def name(self) -> str:
        """See `Judge`."""
        return self.judge.name

    @property
    def looks_at(self) -> tuple[str, ...]:
        """See `Judge`."""
        return self.judge.looks_at

    @property
    def version(self) -> str:
        """See `Judge`."""
        return self.judge.version

    @property
    def depends_on(self) -> tuple[str, ...]:
        """See `Judge`."""
        return self.judge.depends_on

    def check(self, history: History, observation: Observation) -> Opinion:
        """See `Judge`."""
        return self.clock.timing(self.judge.check)(history, observation)


def plan_on(session: Session, name: str) -> Plan:
    """What a hunt does with each workload."""
    target = session.target(name)
    kind = target.recovery(walk=True, fsck=False)
    return make_plan(session, target, CHECKERS, (kind,), Exploration())


def one_guest(session: Session, plan: Plan, selection: Selection) -> dict[str, float]:
    """Milliseconds for a workload in one guest: recording, judging, and the rest, which is exploring."""
    judged = Clock()
    judges = tuple(TimedJudge(judge, judged) for judge in plan.judges)
    numbers = selection.numbers()
    out = session.store_folder / "bench.pcr"
    TimedMachine.clock = Clock()
    recoveries = remembered = 0
    with TimedMachine(session.settings) as machine:
        started = time.perf_counter()
        for number in numbers:
            workload = selection.space.whole(number)
            result = examine(machine, replace(plan, workload=workload, judges=judges), out, lambda _: None)
            recoveries += result.recoveries
            remembered += result.remembered
        seconds = time.perf_counter() - started
    ms = 1000 / len(numbers)
    record, judging = TimedMachine.clock.seconds * ms, judged.seconds * ms
    return {
        "workloads/s, one guest": len(numbers) / seconds,
        "recoveries/workload": recoveries / len(numbers),
        "remembered/workload": remembered / len(numbers),
        "ms/workload": seconds * ms,
        "ms recording": record,
        "ms judging": judging,
        "ms exploring and the rest": seconds * ms - record - judging,
    }


def whole_hunt(session: Session, plan: Plan, selection: Selection) -> dict[str, float]:
    """A hunt as the command runs it, guests' start and store included."""
    started = time.perf_counter()
    crew: Crew = session.crew(None)
    with TerminalProgress(len(selection.numbers())) as progress:
        hunted = run_hunt(selection, {Probe.WALK: plan}, crew, session.store, progress, fresh=True)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "workloads run": hunted.run,
        f"workloads/s, {crew.machines} guests": hunted.run / seconds,
    }


def main() -> None:
    """Run every measurement and print them, target by target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="workloads of two operations")
    parser.add_argument("--target", action="append", help="only this one; can be repeated")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="postcrash-bench-") as folder:
        session = Session(Path(folder), explainer=explanation)
        for name in options.target or TARGETS:
            plan = plan_on(session, name)
            for length, sample in ((1, None), (2, options.sample)):
                selection = Selection(WorkloadSpace(GRAMMARS["ace"], length), sample=sample)
                alone = Selection(selection.space, sample=min(100, sample or 100))
                found = {**one_guest(session, plan, alone), **whole_hunt(session, plan, selection)}
                figures[f"{name}, {length} operation{'s' * (length > 1)}"] = found
    for title, values in figures.items():
        table = Table(box=None, show_header=False, title=title, title_justify="left")
        for figure, value in values.items():
            table.add_row(figure, f"{value:.1f}")
        Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
