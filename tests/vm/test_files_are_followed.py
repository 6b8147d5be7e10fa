"""A file that was synced and lost is found, whatever a later operation calls it, even once this has returned.

`settled` are the crash intervals in which the later operation had already returned. There the new name
is no excuse, and neither is the claim that the operation had only just started.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from postcrash.checkers.durability import Durability
from postcrash.harness.examination.result import instants_of
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.model import Observation, Verdict, Workload, every_answer, parse_workload
from postcrash.targets import base_image, target_named

from .conftest import Record, RecordedWorkload, explored, intervals_of
from .mutant_kernel import RETURN_SUCCESS, mutant

LATER = ("", "rename a b", "rename a D/b", "rename c a", "unlink a", "link a b", "exchange a c")


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A guest whose ext4 returns from fsync at once."""
    kernel = mutant(tmp_path_factory.mktemp("kernel"), "ext4_sync_file", RETURN_SUCCESS)
    with Machine(MachineSettings(kernel.path, guest_root(kernel, cache_folder()))) as machine:
        yield machine


def objections(machine: Machine, recorded: RecordedWorkload, returned: int) -> list[str]:
    """The objections of durability at instants at which at least this many operations had returned."""
    found = []
    for interval in intervals_of(explored(machine, recorded)):
        late = [history for history in instants_of(interval, recorded.workload) if history.returned >= returned]
        for history, outcome in product(late, interval.outcomes):
            seen = Observation.from_wire(outcome.observation)
            answers = every_answer(partial(Durability().check, history, seen))
            found += [opinion.message for opinion, _ in answers if opinion.verdict is Verdict.VIOLATED]
    return found


def workload_of(setup: str, operations: str, later: str) -> tuple[Workload, int]:
    """The workload, and how many operations it has up to the later one."""
    lines = [*setup.split("; "), "---", *operations.split("; "), *([later] if later else [])]
    workload = parse_workload("\n".join(lines), "followed")
    return workload.with_tail(), len(workload.operations)


@pytest.mark.parametrize("later", LATER)
def test_an_fsync_that_does_nothing(forgetful: Machine, tmp_path: Path, later: str) -> None:
    setup = "mkdir D; creat a; append a 4096; creat c; append c 100"
    workload, count = workload_of(setup, "append a 4096; fsync a", later)
    target = target_named("ext4-current")
    base = base_image(target, cache_folder() / "bases")
    out = tmp_path / "recording.pcr"
    forgetful.record(base.path, target.mount, workload, out, {}, None)
    found = objections(forgetful, RecordedWorkload(target, workload, Source(out, base.path, "cache")), count)
    assert found
    assert all(message.startswith("fsync a (operation 7) had returned, but ") for message in found)


@pytest.mark.parametrize("later", LATER)
def test_a_sync_without_a_flush(machine: Machine, record: Record, later: str) -> None:
    """docs/findings/xfs-sync-without-a-flush.md"""
    setup = "mkdir D; creat a; append a 8192; creat c; append c 100"
    workload, count = workload_of(setup, "write a 0 4096; commit; sync", later)
    assert objections(machine, record("xfs", workload), count)


@pytest.mark.parametrize("target", ["ext4-current", "btrfs", "xfs"])
@pytest.mark.parametrize("later", LATER)
def test_an_fsync_that_keeps_its_promise(machine: Machine, record: Record, target: str, later: str) -> None:
    setup = "mkdir D; creat a; append a 4096; creat c; append c 100"
    workload, _ = workload_of(setup, "append a 4096; fsync a", later)
    assert not objections(machine, record(target, workload), 0)
