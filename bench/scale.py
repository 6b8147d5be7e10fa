"""`make bench`, third part: long recordings, explored whole.

A recording of many journal commits on ext4 is made long by writes to blocks that the file system does not use: the same
number in front of each flush, or all of them in one epoch. Nothing but memory and time tells such a recording from the
short one, so both are printed.
"""

import argparse
import itertools
import json
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from postcrash._core import Recording, write_recording
from postcrash.harness.budget import Budget
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.events import ExplorationEnd, IntervalReport
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import Workload, WorkloadBuilder
from postcrash.model.numbers import allow_large_numbers
from postcrash.model.units import BLOCK_SECTORS, SECTOR_BYTES
from postcrash.recorders.events import DurableEvent, FlushEvent, WriteEvent, ZeroEvent, recording_events
from postcrash.targets import base_image, target_named

if TYPE_CHECKING:
    from postcrash._core import NewEvent

EPOCH_COMMITS = 10
BUDGET = Budget(recoveries=1_000_000, seconds=600)


@dataclass(frozen=True)
class Shape:
    """A recording of `commits` journal commits with so many writes more: `spread` over all flushes, or in one epoch."""

    name: str
    commits: int
    spread: bool
    writes: int
    write_bytes: int


@dataclass(frozen=True)
class Figures:
    """What exploring a recording cost; memory is the peak of each process, mapped files included."""

    requests: int
    recorded_bytes: int
    intervals: int
    in_flight_max: int
    recoveries: int
    complete: bool
    seconds: float
    crash_disk_kib: int
    guest_kib: int


def workload(commits: int) -> Workload:
    """A file renamed to and fro, with a sync after each time."""
    builder = WorkloadBuilder().creat("A").begin()
    for old, new in itertools.islice(itertools.cycle((("A", "B"), ("B", "A"))), commits):
        builder.rename(old, new).sync()
    return builder.build("renames")


def free_sectors(image: Path, used: set[int], sectors: int) -> Iterator[int]:
    """Places for writes of `sectors` in blocks that no file has and that are not in `used`."""
    listed = subprocess.run(["dumpe2fs", image], capture_output=True, text=True, check=True).stdout
    for line in re.findall(r"^  Free blocks: (.*)$", listed, re.MULTILINE):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", line):
            for block in range(int(first), int(last or first) + 1):
                if block not in used:
                    yield from range(block * BLOCK_SECTORS, (block + 1) * BLOCK_SECTORS, sectors)


def lengthened(recording: Recording, image: Path, shape: Shape) -> Iterator["NewEvent"]:
    """The events of `recording` with the writes of `shape` among them, each completed at once."""
    events = recording_events(recording)
    used = {event.sector // BLOCK_SECTORS for event in events if isinstance(event, WriteEvent | ZeroEvent)}
    places = free_sectors(image, used, shape.write_bytes // SECTOR_BYTES)
    durable = events.index(DurableEvent())
    flushes = [number for number, event in enumerate(events) if isinstance(event, FlushEvent) and number > durable]
    chosen = flushes if shape.spread else flushes[len(flushes) // 2 :][:1]
    shares = {flush: len(range(i, shape.writes, len(chosen))) for i, flush in enumerate(chosen)}
    idents = itertools.count(len(events))
    for number, event in enumerate(events):
        for ident in itertools.islice(idents, shares.get(number, 0)):
            data = struct.pack("<Q", ident) * (shape.write_bytes // 8)
            yield "write", ident, next(places), data, False, False
            yield "complete", ident
        if isinstance(event, WriteEvent):
            yield "write", event.id, event.sector, recording.data(number), event.fua, event.preflush
        else:
            yield event


def measured(shape: Shape, settings: MachineSettings, image_mib: int, folder: Path) -> Figures:
    """Make the recording of `shape` on an ext4 image of its own and explore every crash state of it in one guest."""
    target = replace(target_named("ext4-current"), size_mib=image_mib)
    base = base_image(target, folder)
    short, path = folder / "short.pcr", folder / "long.pcr"
    with Machine(replace(settings, disk_mib=image_mib)) as machine:
        machine.record(base.path, target.mount, workload(shape.commits), short, {})
        recording = Recording(short)
        write_recording(path, recording.disk_sectors, "{}", lengthened(recording, base.path, shape))
        recover = target.recovery(walk=True, fsck=False)
        intervals = in_flight_max = 0
        complete = True
        for event in machine.explore(Source(path, base.path, "cache"), recover, BUDGET, memo=False):
            if isinstance(event, IntervalReport):
                intervals += 1
                in_flight_max = max(in_flight_max, event.pieces)
                complete &= event.left_out is None and event.covered == event.states
    assert isinstance(event, ExplorationEnd)
    submitted = [isinstance(event, WriteEvent | ZeroEvent | FlushEvent) for event in recording_events(recording)]
    requests = sum(submitted) + shape.writes
    return Figures(
        *(requests, path.stat().st_size, intervals, in_flight_max, event.recoveries, complete),
        *(event.seconds, event.disk_memory_kib, event.memory_kib),
    )


def shown(figure: float) -> str:
    """With commas; `complete` as a word, seconds with one decimal."""
    return str(figure) if isinstance(figure, bool) else f"{figure:,.1f}".removesuffix(".0")


def main() -> None:
    """Explore both shapes and print one table."""
    allow_large_numbers()
    parser = argparse.ArgumentParser(description=__doc__)
    pair: dict[str, Any] = {"type": int, "nargs": 2, "metavar": ("WRITES", "BYTES")}
    parser.add_argument("--commits", type=int, default=500, help="journal commits of the recording that is spread")
    parser.add_argument("--spread", **pair, default=(1 << 20, 2048), help="writes spread over its flushes")
    parser.add_argument("--epoch", **pair, default=(200_000, 4096), help="writes in one epoch")
    parser.add_argument("--image-mib", type=int, default=2304, help="size of the ext4 image")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    shapes = (
        Shape("flushes", options.commits, True, *options.spread),
        Shape("one epoch", EPOCH_COMMITS, False, *options.epoch),
    )
    kernel = find_kernel()
    settings = MachineSettings(kernel.path, guest_root(kernel, cache_folder()))
    table = Table("figure", *(shape.name for shape in shapes))
    figures: dict[str, dict[str, int | float]] = {}
    with tempfile.TemporaryDirectory(prefix="postcrash-bench-") as folder:
        for shape in shapes:
            figures[shape.name] = asdict(measured(shape, settings, options.image_mib, Path(folder)))
    for figure in (field.name for field in fields(Figures)):
        table.add_row(figure, *(shown(found[figure]) for found in figures.values()))
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
