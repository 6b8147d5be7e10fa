"""A machine without a guest."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from postcrash._core import Recording, export_dm_log_writes, write_recording
from postcrash.harness.errors import GuestLostError, LostAtWork, OperationFailedError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.plan import Plan
from postcrash.harness.guests.events import ExecutionReport, ExplorationEvent
from postcrash.model import Workload
from postcrash.reports.explanation import explanation
from postcrash.targets import RecoveryKind, Target

from .conftest import EXPLORED, empty_base

DISK_SECTORS = 8
WRITE = bytes(4096)
WRITE_AND_FLUSH = (
    ("started", 0),
    *(("write", 0, 0, WRITE, False, False), ("complete", 0), ("flush", 1), ("complete", 1)),
    ("returned", 0, 0),
)


def pretended_plan(folder: Path, target: Target, workload: Workload, **more: Any) -> Plan:
    """A plan for a `FakeMachine`: nobody judges what mounting shows, unless `more` says otherwise."""
    asked = {
        "judges": (),
        "recoveries": (target.recovery(walk=True, fsck=False),),
        "how": Exploration(),
        "explainer": explanation,
        **more,
    }
    return Plan(target, empty_base(folder), "any", "any", workload, **asked)


@dataclass
class FakeLog:
    """A log of dm-log-writes that has a write with or without FUA. `fua` counts from run `agrees_from` on."""

    fua: bool
    agrees_from: int = 1
    runs: int = 0

    def write(self, log: Path, folder: Path) -> None:
        self.runs += 1
        fua = self.fua and self.runs >= self.agrees_from
        above = folder / "above.pcr"
        write_recording(above, DISK_SECTORS, "{}", [("write", 0, 0, WRITE, fua, False), ("complete", 0)])
        export_dm_log_writes(Recording(above), log, [(0, "started:0"), (2, "returned:0"), (2, "done")])


def nothing(_recover: RecoveryKind) -> Iterable[ExplorationEvent]:
    return ()


class FakeMachine:
    """A machine whose recordings, recoveries and losses are those that a test asks for.

    recorded  what its crash disk sees while a workload runs
    explored  the events of exploring a recording with a kind of recovery, without the last one
    shown     what the recovery of one crash state shows, by its kind
    fails     the error with which an operation of a workload fails
    lost      guests that are lost, either while the machine records or after the events of an exploration
    stale     guests that an earlier request has lost
    log       what its log disk gets; without it, there is no such disk
    """

    def __init__(
        self,
        recorded: Sequence[tuple[Any, ...]],
        *,
        explored: Callable[[RecoveryKind], Iterable[ExplorationEvent]] = nothing,
        shown: Callable[[RecoveryKind], Any] | None = None,
        fails: OperationFailedError | None = None,
        lost: Sequence[LostAtWork] = (),
        stale: Sequence[LostAtWork] = (),
        log: FakeLog | None = None,
    ) -> None:
        self._recorded, self._explored, self._shown, self._lost, self._log = recorded, explored, shown, [*lost], log
        self._noted, self._fails = [*stale], fails
        self.has_log_disk = log is not None

    def record(
        self,
        base: Path,
        mount: object,
        workload: Workload,
        out: Path,
        metadata: object,
        held: object,
        *,
        log: Path | None = None,
        log_set_up: bool = True,
    ) -> Workload:
        assert held is None
        if self._fails is not None:
            raise self._fails
        write_recording(out, DISK_SECTORS, json.dumps(metadata), list(self._recorded))
        if self._lost and self._lost[0].during == "run":
            self._lose()
        if log is not None:
            assert self._log is not None
            self._log.write(log, out.parent)
        return workload

    def explore(self, source: object, recover: RecoveryKind, *_: object, **__: object) -> Iterator[ExplorationEvent]:
        yield from self._explored(recover)
        if self._lost:
            self._lose()
        yield EXPLORED

    def execute(self, source: object, interval: int, choices: object, recover: RecoveryKind) -> ExecutionReport:
        assert self._shown is not None
        return ExecutionReport(self._shown(recover), (), None)

    def take_lost(self) -> list[LostAtWork]:
        lost, self._noted = self._noted, []
        return lost

    def _lose(self) -> NoReturn:
        self._noted += self._lost
        raise GuestLostError(self._lost[0])
