"""Every instant is judged. Brute force, on real kernels, confirms the reason for each instant that is left out.

Brute force knows no intervals. It cuts the recording off after each event, as if the power had failed there, and
recovers every content that the disk can have at exactly this instant.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals, write_recording
from postcrash.harness.guests.events import IntervalReport
from postcrash.harness.guests.machine import Machine
from postcrash.model import Workload, WorkloadBuilder
from postcrash.targets import Target, target_named

from .command import postcrash
from .conftest import Record, RecordedWorkload, explored, intervals_of
from .mutant_kernel import RETURN_SUCCESS, mutant

CONTENTS_MAX = 2**7
"""The limit for one instant, for brute force."""
BTRFS = target_named("btrfs")
SMALL_BTRFS = replace(BTRFS, name="btrfs-small-nodes", mkfs=(*BTRFS.mkfs, "-n", "4096", "-m", "single"))

WHOLE_MIN = 8
"""At least this many states of the operations must have only instants that are small enough for brute force."""

Operations = tuple[int, int]
"""How many operations had started, and how many had returned."""


def in_flight_across_operations() -> Workload:
    """The data of a file is under way while other operations start and return."""
    builder = WorkloadBuilder().creat("A").append("A", 8192).creat("C").begin()
    builder.write("A", 0, 4096).writeback("A").rename("A", "B").write("B", 4096, 4096).writeback("B").unlink("C")
    return builder.fsync("B").build("across")


def cut_short(recorded: RecordedWorkload, folder: Path) -> Iterator[tuple[int, Operations, RecordedWorkload]]:
    """The recording up to each of its events, from the set-up on: the event, how far the operations were, this part."""
    whole = Recording(recorded.source.recording)
    events = [
        (*event[:3], whole.data(number), *event[4:]) if event[0] == "write" else event
        for number, event in enumerate(whole.events())
    ]
    for end in range(events.index(("durable",)) + 1, len(events) + 1):
        path = folder / f"{end}.pcr"
        write_recording(path, whole.disk_sectors, "{}", events[:end])
        words = [event[0] for event in events[:end]]
        source = replace(recorded.source, recording=path)
        yield end, (words.count("started"), words.count("returned")), replace(recorded, source=source)


def shown(interval: IntervalReport) -> dict[str, int]:
    """Distinct observations with the number of crash states that lead to each."""
    return {json.dumps(o.observation, sort_keys=True): o.states for o in interval.outcomes}


@dataclass
class ShownOutcomes:
    """Outcomes by how far the operations were. With numbers of crash states, they are by the event after the crash."""

    outcomes: dict[Operations, set[str]] = field(default_factory=lambda: defaultdict(set))
    counts: dict[int, list[list[tuple[str, int]]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, operations: Operations, event: int, interval: IntervalReport) -> None:
        """Add what an interval shows at an instant."""
        self.outcomes[operations] |= set(shown(interval))
        self.counts[event] = sorted([*self.counts[event], sorted(shown(interval).items())])


def by_exploring(machine: Machine, recorded: RecordedWorkload) -> ShownOutcomes:
    """What the explorer finds."""
    found = ShownOutcomes()
    for interval in intervals_of(explored(machine, recorded)):
        assert interval.left_out is None
        for instant in interval.instants:
            found.add((instant.started, instant.returned), instant.event, interval)
    return found


def by_brute_force(machine: Machine, recorded: RecordedWorkload, folder: Path) -> tuple[ShownOutcomes, set[Operations]]:
    """What a crash at each single instant can leave, and the states of the operations with too many contents."""
    found, too_many = ShownOutcomes(), set()
    for end, operations, cut in cut_short(recorded, folder):
        known = intervals(Recording(cut.source.recording), cut.source.base, cut.source.model)
        last = [interval for interval in known if interval.before_event == end]
        assert last
        if max(interval.contents for interval in last) > CONTENTS_MAX:
            too_many.add(operations)
            continue
        events = explored(machine, cut, brute_force=True, intervals=[interval.index for interval in last])
        for interval in intervals_of(events):
            found.add(operations, end, interval)
    return found, too_many


@pytest.mark.parametrize(
    "target", ["ext4-current", "ext4-journal", SMALL_BTRFS, "xfs"], ids=lambda target: getattr(target, "name", target)
)
def test_every_instant_has_the_outcomes_of_brute_force(
    machine: Machine, record: Record, tmp_path: Path, target: str | Target
) -> None:
    recorded = record(target, in_flight_across_operations())
    found, (brute, too_many) = by_exploring(machine, recorded), by_brute_force(machine, recorded, tmp_path)
    whole = brute.outcomes.keys() - too_many
    assert len(whole) >= WHOLE_MIN
    for operations, outcomes in brute.outcomes.items():
        assert outcomes <= found.outcomes[operations], operations
        assert operations in too_many or outcomes == found.outcomes[operations], operations
    compared = found.counts.keys() & brute.counts.keys()
    assert len(compared) >= WHOLE_MIN
    assert {event: found.counts[event] for event in compared} == {event: brute.counts[event] for event in compared}


EARLIER = "creat a\nappend a 4096\n---\n"
BROKEN_FSYNC = "append a 4096\nfsync a\n"
XFS_SYNC = "write a 0 4096\ncommit\nsync\n"
LATER = ["", "unlink a\n", "rename a b\n", "creat c\nwrite c 0 4096\nrename c a\n", "truncate a 0\n"]


def verdict_on_durability(folder: Path, operations: str, *arguments: str) -> str:
    """The verdict of `check` on the durability of a workload. Results are kept in `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "later.ops").write_text(EARLIER + operations)
    result = postcrash(folder, "check", "later.ops", "--judge", "durability", "--json", "-", *arguments)
    return str(json.loads(result.stdout)["judges"]["durability"]["verdict"])


@pytest.mark.parametrize("later", LATER)
def test_no_later_operation_excuses_what_xfs_breaks(tmp_path: Path, later: str) -> None:
    """docs/findings/xfs-sync-without-a-flush.md"""
    assert verdict_on_durability(tmp_path, XFS_SYNC + later, "--target", "xfs") == "violated"


@pytest.mark.parametrize("later", LATER)
def test_no_later_operation_excuses_an_fsync_that_does_nothing(tmp_path: Path, later: str) -> None:
    kernel = mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS)
    asked = (BROKEN_FSYNC + later, "--target", "ext4-current")
    assert verdict_on_durability(tmp_path / "mutant", *asked, "--kernel", str(kernel.path)) == "violated"
    assert verdict_on_durability(tmp_path / "stock", *asked) == "holds"


@pytest.mark.parametrize("recorder", ["crash-disk", "dm-log-writes"])
def test_what_the_kernel_does_after_an_fsync_has_returned_is_too_late(tmp_path: Path, recorder: str) -> None:
    """This fsync starts the journal's commit but does not wait for it."""
    kernel = mutant(tmp_path, "jbd2_log_wait_commit", RETURN_SUCCESS)
    asked = ("creat b\nfsync .\n", "--target", "ext4-current", "--recorder", recorder)
    assert verdict_on_durability(tmp_path / "mutant", *asked, "--kernel", str(kernel.path)) == "violated"
    assert verdict_on_durability(tmp_path / "stock", *asked) == "holds"
