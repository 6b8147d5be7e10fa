"""Guests for tests: real kernels, real file systems."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.budget import Budget
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.engine import Qemu
from postcrash.harness.guests.events import ExplorationEnd, ExplorationEvent, IntervalReport, ProgressEvent
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.debian import IMAGE, UML, Suite
from postcrash.harness.guests.kernels.kernel import Kernel, find_kernel, kernel_at
from postcrash.harness.guests.kernels.stock import Stock
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import Observation, Tree, Workload, WorkloadBuilder
from postcrash.store.store import Store
from postcrash.targets import RecoveryKind, Target, base_image, target_named

from .audits import Audit
from .boxes import InGuest, said_by
from .command import postcrash

SUITE = "bookworm"
SERIES = "6.1."
"""Debian's user-mode Linux of this suite is of the same series."""
NEWER_SUITE, NEWER_SERIES = "sid", "7.2."


def overwriting() -> WorkloadBuilder:
    """A file of three blocks whose first block is written again. The test continues from there."""
    return WorkloadBuilder().creat("A").write("A", 0, 12288).begin().write("A", 0, 4096)


OVERWRITE = overwriting().write("A", 8192, 4096).append("A", 8192).fsync("A").sync().build("overwrite")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of the test's own, empty at first."""
    return Store(tmp_path / "store")


def reading(target: Target) -> RecoveryKind:
    """A recovery that reports the tree and reads every file through the guest's kernel."""
    return target.recovery(walk=True, fsck=False).by_kernel()


@dataclass(frozen=True)
class RecordedWorkload:
    """A workload recorded on a target."""

    target: Target
    workload: Workload
    source: Source

    def recover(self) -> RecoveryKind:
        """A recovery that reads every file through the guest's kernel: each outcome is one observation."""
        return reading(self.target)


def root_files(kernel: Kernel) -> dict[Path, bytes]:
    """The files of the guests' root for `kernel` by their places, to make another root of them."""
    root = guest_root(kernel, cache_folder())
    return {file.relative_to(root): file.read_bytes() for file in root.rglob("*") if file.is_file()}


@pytest.fixture(scope="session")
def settings() -> MachineSettings:
    """How guests are started."""
    kernel = find_kernel()
    return MachineSettings(kernel.path, guest_root(kernel, cache_folder()))


@pytest.fixture(scope="session")
def machine(settings: MachineSettings) -> Iterator[Machine]:
    """One guest for all tests that do not harm it."""
    with Machine(settings) as booted:
        yield booted


@pytest.fixture(scope="session")
def image() -> Kernel:
    """Debian's kernel image. It is fetched if it is missing."""
    stock = Stock(cache_folder())
    found = [kernel for kernel in stock.images() if kernel.version.startswith(SERIES)]
    if not found:
        with Suite(SUITE, cache_folder()).unpacked(IMAGE) as parts:
            found = [stock.add(f"{SUITE}-test", parts)]
    return kernel_at(found[-1].path, found[-1].modules, cache_folder())


@pytest.fixture(scope="session")
def newer_kernel() -> Kernel:
    """Debian's newer user-mode Linux. It is fetched if it is missing."""
    stock = Stock(cache_folder())
    found = [kernel for kernel in stock.all() if kernel.engine == "uml" and kernel.version.startswith(NEWER_SERIES)]
    if not found:
        with Suite(NEWER_SUITE, cache_folder()).unpacked(UML) as parts:
            found = [stock.add(f"{NEWER_SUITE}-test", parts)]
    return kernel_at(found[-1].path, found[-1].modules, cache_folder())


@pytest.fixture(scope="session")
def qemu_settings(image: Kernel) -> MachineSettings:
    """How QEMU guests are started."""
    return settings_for(image, guest_root(image, cache_folder()))


@pytest.fixture(scope="session")
def qemu_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which blklogwrites logs in the guest `qemu`."""
    return tmp_path_factory.mktemp("qemu") / "log"


@pytest.fixture(scope="session")
def qemu(qemu_settings: MachineSettings, qemu_log: Path) -> Iterator[Machine]:
    """One QEMU guest for all tests that do not harm it. Every recorder can watch it."""
    with Machine(with_all_recorders(qemu_settings, qemu_log)) as booted:
        yield booted


def with_all_recorders(settings: MachineSettings, log: Path) -> MachineSettings:
    """Settings for guests of QEMU, whose blklogwrites logs to `log`."""
    assert isinstance(settings.engine, Qemu)
    log.touch()
    return replace(settings, log_disk=True, engine=replace(settings.engine, blklogwrites=log))


Record = Callable[..., RecordedWorkload]


@pytest.fixture
def record(machine: Machine, tmp_path: Path) -> Record:
    """Records a workload on the target of that name."""
    return recording_in(tmp_path, machine)


def recording_in(folder: Path, machine: Machine) -> Record:
    """Records a workload on the target of that name. The recording is kept in `folder`."""

    def run(on: str | Target, workload: Workload, model: str = "cache", held: int | None = None) -> RecordedWorkload:
        target = target_named(on) if isinstance(on, str) else on
        base = base_image(target, cache_folder() / "bases")
        out = folder / f"{target.name}-{workload.name}.pcr"
        machine.record(base.path, target.mount, workload, out, {}, held)
        return RecordedWorkload(target, workload, Source(out, base.path, model))

    return run


def explored(machine: Machine, recorded: RecordedWorkload, **options: Any) -> list[ExplorationEvent]:
    """All events of an exploration that must be deterministic and lose no guest."""
    recover = options.pop("recover", recorded.recover())
    budget = options.pop("budget", Budget(20_000, 300))
    events = list(machine.explore(recorded.source, recover, budget, **options))
    assert all(isinstance(event, IntervalReport | ProgressEvent | ExplorationEnd) for event in events)
    return events


def intervals_of(events: list[ExplorationEvent]) -> list[IntervalReport]:
    """The reports of crash intervals."""
    return [event for event in events if isinstance(event, IntervalReport)]


def executions(interval: IntervalReport) -> int:
    """How many executions were run or remembered."""
    return interval.recoveries + interval.remembered


def judged(interval: IntervalReport) -> int:
    """Executions except the first run, which shows what nobody waits for. Blocks are held if there are over 4."""
    return executions(interval) - (1 if interval.components > 4 and interval.recoveries else 0)


def trees_of(interval: IntervalReport) -> list[Tree]:
    """The trees of an interval's outcomes."""
    return [Observation.from_wire(outcome.observation).tree for outcome in interval.outcomes]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Runs `postcrash audit` with these arguments."""

    def run(*arguments: str, command: str = "audit") -> subprocess.CompletedProcess[str]:
        return postcrash(tmp_path, command, *arguments)

    return run


@pytest.fixture
def in_guest(machine: Machine, tmp_path: Path) -> InGuest:
    """Runs a shell script outside of any box of xsync, as root, and returns the lines that it says on both streams."""
    return partial(said_by, machine, tmp_path)
