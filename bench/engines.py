"""What an engine costs: booting, crash states a second, and in virtual time what sleeping costs.

Crash states are those of examples/journal.ops, by brute force, on three file systems one after another in one guest on
one core. Sleeping: a workload that sleeps for half a minute, and the same without its sleeps, in alternating rounds.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from postcrash._core import Recording
from postcrash.harness.budget import Budget
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.events import ExplorationEnd
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import Kernel, in_virtual_time
from postcrash.harness.guests.kernels.stock import ENGINES, choose_kernel
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import Workload, load_workload, parse_workload
from postcrash.recorders.events import WriteEvent, recording_events
from postcrash.targets import base_image, target_named

TARGETS = ("ext4-current", "btrfs", "xfs")
STATES = 400
ROUNDS = 3
EXAMPLE = Path(__file__).resolve().parent.parent / "examples/journal.ops"
SLEEPING = "creat a\nappend a 4096\nsleep 10\ncreat b\nappend b 4096\nsleep 20\n"


@contextmanager
def booted(kernel: Kernel) -> Iterator[tuple[Machine, float]]:
    """A guest on the first core, and the seconds that it took to boot."""
    machine = Machine(settings_for(kernel, guest_root(kernel, cache_folder())))
    try:
        yield machine, machine.boot()
    finally:
        machine.close()


def record(machine: Machine, name: str, workload: Workload, out: Path) -> tuple[Source, float]:
    """A recording made on the target `name`, and the seconds that it took."""
    target = target_named(name)
    base = base_image(target, cache_folder() / "bases")
    started = time.monotonic()
    machine.record(base.path, target.mount, workload, out, {})
    return Source(out, base.path, "cache"), time.monotonic() - started


def states_a_second(machine: Machine, name: str, folder: Path) -> float:
    """Crash states recovered by brute force, without running any again."""
    source, _ = record(machine, name, load_workload(EXAMPLE).with_tail(checkpoint=False), folder / f"{name}.pcr")
    recover = target_named(name).recovery(walk=True, fsck=False)
    budget = Budget(STATES, 600)
    events = machine.explore(source, recover, budget, recheck_share=0.0, brute_force=True)
    (end,) = (event for event in events if isinstance(event, ExplorationEnd))
    return end.recoveries / end.seconds


def sleeping(kernel: Kernel, folder: Path) -> dict[str, str]:
    """Wall seconds with and without sleeps, and what the kernel wrote by itself meanwhile."""
    workloads = {
        "without its sleeps": parse_workload(_awake(SLEEPING), "awake"),
        "with 30 s of sleep": parse_workload(SLEEPING, "asleep"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in workloads}
    writes: dict[str, int] = {}
    with booted(kernel) as (machine, _):
        record(machine, TARGETS[0], workloads["without its sleeps"], folder / "first.pcr")  # loads the file system
        for _ in range(ROUNDS):
            for name, workload in workloads.items():
                source, took = record(machine, TARGETS[0], workload, folder / f"{workload.name}.pcr")
                seconds[name].append(took)
                events = recording_events(Recording(source.recording))
                writes[name] = sum(isinstance(event, WriteEvent) for event in events)
    return {name: f"{statistics.median(seconds[name]):.2f} s, {writes[name]} writes" for name in workloads}


def _awake(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("sleep"))


def main() -> None:
    """Measure one kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="qemu")
    parser.add_argument("--kernel", help="as that of the commands; by default the newest that the engine has")
    options = parser.parse_args()
    kernel = choose_kernel(options.engine, options.kernel, cache_folder())
    table = Table("measurement", "value", title=kernel.label)
    with tempfile.TemporaryDirectory(prefix="postcrash-bench-") as folder:
        with booted(kernel) as (machine, seconds):
            table.add_row("boot", f"{seconds:.1f} s")
            for name in TARGETS:
                table.add_row(f"{name}: crash states a second", f"{states_a_second(machine, name, Path(folder)):.0f}")
        try:
            virtual = in_virtual_time(kernel)
        except UsageError:
            pass
        else:
            for name, figure in sleeping(virtual, Path(folder)).items():
                table.add_row(f"{TARGETS[0]}, virtual time, {name}", figure)
    Console().print(table)


if __name__ == "__main__":
    main()
