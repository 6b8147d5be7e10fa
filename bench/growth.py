"""`make bench`, second part: how recoveries grow with the number of blocks in flight.

Three families of workloads, each with more and more blocks in one epoch, every crash state of the whole recording
explored: blocks overwritten in place and never synced, a mail spool (files created and written, then sync), and
SQLite's rollback journal. `--plot FILE` draws the recoveries over the blocks in flight.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from matplotlib import pyplot
from rich.console import Console
from rich.table import Table

from postcrash.harness.budget import Budget
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.events import ExplorationEnd, IntervalReport
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import Workload, WorkloadBuilder
from postcrash.model.units import BLOCK_BYTES
from postcrash.targets import base_image, target_named

TARGETS = ("ext4-current", "btrfs", "xfs")
BLOCKS = (25, 50, 100, 200)


def loose(blocks: int) -> Workload:
    """Every second block of a file overwritten in place."""
    builder = WorkloadBuilder().creat("A").write("A", 0, 2 * BLOCK_BYTES * blocks).begin()
    for block in range(blocks):
        builder.write("A", 2 * BLOCK_BYTES * block, BLOCK_BYTES)
    return builder.build("loose").with_tail(checkpoint=False)


def spool(blocks: int) -> Workload:
    """Small files, then sync."""
    builder = WorkloadBuilder().mkdir("spool").begin()
    for number in range(blocks):
        builder.creat(f"spool/{number}").write(f"spool/{number}", 0, BLOCK_BYTES)
    return builder.sync().build("spool")


def rollback_journal(blocks: int) -> Workload:
    """Copy old blocks to a journal, sync it, overwrite the blocks in the database, sync it, remove the journal."""
    builder = WorkloadBuilder().creat("db").write("db", 0, 2 * BLOCK_BYTES * blocks).begin()
    builder.creat("db-journal").append("db-journal", BLOCK_BYTES * blocks).fsync("db-journal")
    for block in range(blocks):
        builder.write("db", 2 * BLOCK_BYTES * block, BLOCK_BYTES)
    return builder.fsync("db").unlink("db-journal").build("rollback-journal").with_tail(checkpoint=False)


FAMILIES: tuple[Callable[[int], Workload], ...] = (loose, spool, rollback_journal)


@dataclass(frozen=True)
class Measurement:
    """One recording explored whole: blocks in flight in the largest epoch, crash states, recoveries, seconds."""

    family: str
    target: str
    blocks: int
    in_flight: int
    states: str
    recoveries: int
    seconds: float


def measured(machine: Machine, workload: Workload, name: str, blocks: int, recording: Path) -> Measurement:
    """Record and explore."""
    target = target_named(name)
    base = base_image(target, cache_folder() / "bases")
    machine.record(base.path, target.mount, workload, recording, {})
    started = time.monotonic()
    recover = target.recovery(walk=True, fsck=False)
    *events, last = machine.explore(Source(recording, base.path, "cache"), recover, Budget(100_000, 120), memo=False)
    assert isinstance(last, ExplorationEnd)
    intervals = [event for event in events if isinstance(event, IntervalReport)]
    largest = max(interval.components for interval in intervals)
    states = sum(interval.covered for interval in intervals)
    left_out = " (not all)" if any(interval.left_out for interval in intervals) else ""
    seconds = time.monotonic() - started
    return Measurement(
        *(workload.name, name, blocks, largest, f"{float(states):.0e}{left_out}"),
        *(last.recoveries, seconds),
    )


def plot(points: list[Measurement], file: Path) -> None:
    """One panel a target: a line for each family, and the line of one recovery a block."""
    pyplot.rcParams["svg.hashsalt"] = "postcrash"  # the same points give the same file
    figure, panels = pyplot.subplots(1, len(TARGETS), figsize=(11, 3.6), sharey=True, layout="constrained")
    for panel, name in zip(panels, TARGETS, strict=True):
        for family in dict.fromkeys(point.family for point in points):
            mine = [point for point in points if (point.family, point.target) == (family, name)]
            panel.plot([p.in_flight for p in mine], [p.recoveries for p in mine], marker="o", label=family)
        most = max(point.in_flight for point in points)
        panel.plot([0, most], [0, most], color="grey", linestyle=":", label="one a block")
        panel.set(title=name, xlabel="blocks in flight", xlim=(0, None), ylim=(0, None))
    panels[0].set_ylabel("recoveries for all crash states")
    panels[0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main() -> None:
    """Explore every family on every target, print one table and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a picture: .svg, .png or .pdf")
    arguments = parser.parse_args()
    points = []
    kernel = find_kernel()
    settings = MachineSettings(kernel.path, guest_root(kernel, cache_folder()))
    table = Table("workload", "target", "blocks", "in flight, most", "crash states", "recoveries", "seconds")
    with tempfile.TemporaryDirectory(prefix="postcrash-bench-") as folder, Machine(settings) as machine:
        for family, name, blocks in product(FAMILIES, TARGETS, BLOCKS):
            workload = family(blocks)
            point = measured(machine, workload, name, blocks, Path(folder) / "growth.pcr")
            points.append(point)
            figures = (str(point.in_flight), point.states, str(point.recoveries), f"{point.seconds:.1f}")
            table.add_row(workload.name, name, str(blocks), *figures)
    Console().print(table)
    if arguments.plot:
        plot(points, arguments.plot)


if __name__ == "__main__":
    main()
