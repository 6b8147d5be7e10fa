"""`make bench`: what a crash state costs, as ratios within one run.

For each file system the same agent loop (mount, walk, unmount) runs on a plain file (UML's own disk driver) and on the
crash disk over crash states; then two guests against one; then 10,000 states in one guest, watching its memory.
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from postcrash._core import Recording, intervals, state_bytes
from postcrash.harness.budget import Budget
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.events import ExplorationEnd
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import Workload, WorkloadBuilder
from postcrash.targets import Target, base_image, target_named

TARGETS = ("ext4-current", "btrfs", "xfs")
FILES = 10
ROUNDS = 5
CHUNK_SECTORS = 8192


def workload() -> Workload:
    """Ten files of 4 KiB, then sync: enough blocks in flight for thousands of states."""
    builder = WorkloadBuilder().begin()
    for i in range(FILES):
        builder.creat(f"f{i}").write(f"f{i}", 0, 4096)
    return builder.sync().build("bench")


def materialise(source: Source, out: Path) -> None:
    """Write the disk after the whole recording to `out`."""
    recording = Recording(source.recording)
    last = intervals(recording, source.base, source.model)[-1]
    with out.open("wb") as file:
        for sector in range(0, recording.disk_sectors, CHUNK_SECTORS):
            count = min(CHUNK_SECTORS, recording.disk_sectors - sector)
            file.write(state_bytes(recording, source.base, source.model, last.index, [], sector, count))


def busiest(source: Source) -> int:
    """The crash interval with the most different contents."""
    found = intervals(Recording(source.recording), source.base, source.model)
    return max(found, key=lambda interval: interval.contents).index


def explore(machine: Machine, target: Target, source: Source, states: int) -> tuple[float, int]:
    """States a second over `states` crash states of the busiest interval, and the guest's peak memory in KiB."""
    recover = target.recovery(walk=True, fsck=False)
    events = machine.explore(
        source, recover, Budget(states, 3600), recheck_share=0, brute_force=True, intervals=[busiest(source)]
    )
    *_, last = events
    assert isinstance(last, ExplorationEnd)
    return last.recoveries / last.seconds, last.memory_kib


class Bench:
    """The measurements; each prints what it does and returns plain figures."""

    def __init__(self, folder: Path, states: int, console: Console) -> None:
        kernel = find_kernel()
        self.settings = MachineSettings(kernel.path, guest_root(kernel, cache_folder()))
        self.folder, self.states, self.console = folder, states, console

    @contextmanager
    def recorded(self, name: str) -> Iterator[tuple[Target, Source]]:
        """A target with a recording of the bench's workload on it."""
        target = target_named(name)
        base = base_image(target, cache_folder() / "bases")
        path = self.folder / f"{name}.pcr"
        with Machine(self.settings) as machine:
            machine.record(base.path, target.mount, workload(), path, {})
        yield target, Source(path, base.path, "cache")

    def against_plain_file(self, name: str) -> dict[str, float]:
        """Crash states a second, loops a second on a plain file, and their ratio, medians of alternating rounds."""
        with self.recorded(name) as (target, source):
            plain = self.folder / f"{name}.plain"
            materialise(source, plain)
            recover = target.recovery(walk=True, fsck=False)
            rates: list[tuple[float, float]] = []
            with Machine(replace(self.settings, plain_disk=plain)) as machine:
                machine.spin("/dev/ubda", recover, 10)
                for _ in range(ROUNDS):
                    spun = machine.spin("/dev/ubda", recover, self.states)
                    rates.append((explore(machine, target, source, self.states)[0], self.states / spun.seconds))
            crash, file = (statistics.median(column) for column in zip(*rates, strict=True))
            ratio = statistics.median(a / b for a, b in rates)
            return {"crash_states_per_s": crash, "plain_file_loops_per_s": file, "ratio": ratio}

    def two_guests(self, name: str) -> dict[str, float]:
        """States a second of two guests at once over those of one, median of alternating rounds."""
        with self.recorded(name) as (target, source), Machine(self.settings) as a, Machine(self.settings) as b:
            ratios = []
            for _ in range(ROUNDS):
                alone, _ = explore(a, target, source, self.states)
                started = time.monotonic()
                both = [
                    threading.Thread(target=explore, args=(machine, target, source, self.states)) for machine in (a, b)
                ]
                for thread in both:
                    thread.start()
                for thread in both:
                    thread.join()
                ratios.append(2 * self.states / (time.monotonic() - started) / alone)
            return {"ratio": statistics.median(ratios)}

    def endurance(self, name: str, states: int) -> dict[str, float]:
        """Peak memory of one guest after a tenth of `states` and after all of them."""
        with self.recorded(name) as (target, source), Machine(self.settings) as machine:
            _, early = explore(machine, target, source, states // 10)
            rate, late = explore(machine, target, source, states - states // 10)
            return {"states_per_s": rate, "early_mib": early / 1024, "late_mib": late / 1024}


def main() -> None:
    """Run every measurement and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=300, help="crash states a round")
    parser.add_argument("--endurance", type=int, default=10_000, help="crash states for the memory check")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    console = Console()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="postcrash-bench-") as folder:
        bench = Bench(Path(folder), options.states, console)
        for name in TARGETS:
            figures[f"{name}: crash disk / plain file"] = bench.against_plain_file(name)
        if len(os.sched_getaffinity(0)) > 1:
            figures["ext4-current: two guests / one"] = bench.two_guests("ext4-current")
        figures[f"ext4-current: {options.endurance} states in one guest"] = bench.endurance(
            "ext4-current", options.endurance
        )
    table = Table("measurement", "figure", "value")
    for name, values in figures.items():
        for figure, value in values.items():
            table.add_row(name, figure, f"{value:.2f}" if value < 100 else f"{value:.0f}")
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
