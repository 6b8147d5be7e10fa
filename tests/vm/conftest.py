"""Guests for tests: real kernels, real file systems."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.guest_root import guest_root
from postcrash.harness.kernel import find_kernel
from postcrash.harness.machine import Event, Machine, MachineSettings, Source
from postcrash.harness.places import cache_folder
from postcrash.model import Observation, Tree, Workload
from postcrash.targets import Target, base_image, target_named


@dataclass(frozen=True)
class Recorded:
    """A workload recorded on a target."""

    target: Target
    workload: Workload
    source: Source

    def recover(self) -> dict[str, Any]:
        """A recovery that reads every file through the guest's kernel: each outcome is one observation."""
        return self.target.read_wire()


@pytest.fixture(scope="session")
def settings() -> MachineSettings:
    """How guests are started."""
    kernel = find_kernel()
    return MachineSettings(kernel.path, guest_root(kernel, cache_folder()))


@pytest.fixture(scope="session")
def machine(settings: MachineSettings) -> Iterator[Machine]:
    """One guest for all tests that do not harm it."""
    with Machine(settings, 0) as booted:
        yield booted


Record = Callable[..., Recorded]


@pytest.fixture
def record(machine: Machine, tmp_path: Path) -> Record:
    """Records a workload on the target of that name."""

    def run(on: str | Target, workload: Workload, model: str = "cache", held: int | None = None) -> Recorded:
        target = target_named(on) if isinstance(on, str) else on
        base = base_image(target, cache_folder() / "bases")
        out = tmp_path / f"{target.name}-{workload.name}.pcr"
        machine.record(base.path, target.mount_wire(), workload, out, {}, held)
        return Recorded(target, workload, Source(out, base.path, model))

    return run


def explored(machine: Machine, recorded: Recorded, **options: Any) -> list[Event]:
    """All events of an exploration that must be deterministic and lose no guest."""
    recover = options.pop("recover", recorded.recover())
    budget = options.pop("budget", Budget(20_000, 300))
    events = list(machine.explore(recorded.source, recover, budget, **options))
    assert {event["event"] for event in events} <= {"interval", "progress", "explored"}
    return events


def intervals_of(events: list[Event]) -> list[Event]:
    """The reports of crash intervals."""
    return [event for event in events if event["event"] == "interval"]


def trees_of(interval: Event) -> list[Tree]:
    """The trees of an interval's outcomes."""
    return [Observation.from_wire(outcome["observation"]).tree for outcome in interval["outcomes"]]
