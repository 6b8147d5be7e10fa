"""Contents that are looked up on the host are those that the guest's kernel reads, in every crash state."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from postcrash.harness.examination.result import instants_of
from postcrash.harness.guests.machine import Machine
from postcrash.model import Observation, Workload, WorkloadBuilder, all_from, every_answer
from postcrash.targets import target_named

from .conftest import Record, explored, intervals_of, reading

MAPPED = ("ext2", "ext3-ordered", "ext3-writeback", "ext4-current", "ext4-journal", "xfs")
LOOSE_BLOCKS = 25
FILES = 200

WORKLOADS = [
    WorkloadBuilder()
    .creat("A")
    .write("A", 0, 20_000)
    .begin()
    .write("A", 0, 4096)
    .write("A", 9000, 3000)
    .append("A", 3000)
    .writeback("A")
    .fsync("A")
    .build("overwrite")
    .with_tail(),
    WorkloadBuilder()
    .creat("A")
    .creat("B")
    .begin()
    .append("A", 5000)
    .truncate("A", 3000)
    .append("B", 8192)
    .writeback("B", 4096, 4096)
    .commit()
    .fallocate("B", "punch-hole", 0, 4096)
    .link("B", "C")
    .build("holes")
    .with_tail(),
    # ext2 finds the blocks of a file after the twelfth by numbers in another block. This block may be lost, and ext2
    # never checks whether the numbers are on the disk.
    WorkloadBuilder().creat("A").begin().write("A", 48 << 10, 4096).build("indirect").with_tail(),
]


def expanded(observation: dict[str, Any]) -> Iterator[str]:
    """Every concrete observation that an observation with choices stands for, without hashes."""
    components: dict[int, int] = {}
    for entry in observation["tree"]:
        entry.pop("hash", None)
        for segment in entry.get("segments", []):
            if isinstance(segment, dict):
                components[segment["component"]] = len(segment["versions"])
    for versions in product(*(range(count) for count in components.values())):
        chosen = dict(zip(components, versions, strict=True))
        yield json.dumps(settled(observation, chosen), sort_keys=True)


def settled(observation: dict[str, Any], chosen: dict[int, int]) -> dict[str, Any]:
    """The observation with one version of each choice. Adjacent segments of one source are joined."""
    tree = []
    for entry in observation["tree"]:
        segments: list[list[Any]] = []
        for segment in entry.get("segments", []):
            parts = segment["versions"][chosen[segment["component"]]] if isinstance(segment, dict) else [segment]
            for start, end, source in parts:
                if segments and segments[-1][2] == source:
                    segments[-1][1] = end
                else:
                    segments.append([start, end, source])
        tree.append({**entry, "segments": segments} if "segments" in entry else entry)
    return {**observation, "tree": tree}


@pytest.mark.parametrize("target", MAPPED)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_mapped_contents_are_those_that_the_kernel_reads(
    machine: Machine, record: Record, target: str, workload: Workload
) -> None:
    if target.startswith(("ext2", "ext3")):
        kept = tuple(op for op in workload.ops if op.word != "fallocate")  # no extents, no fallocate
        workload = replace(workload, ops=kept)
    recorded = record(target, workload)
    mapped = replace(recorded.recover(), map=True)
    read = intervals_of(explored(machine, recorded))
    looked_up = intervals_of(explored(machine, recorded, recover=mapped))
    for by_kernel, by_host in zip(read, looked_up, strict=True):
        concrete = {form for outcome in by_kernel.outcomes for form in expanded(outcome.observation)}
        assert {form for outcome in by_host.outcomes for form in expanded(outcome.observation)} == concrete
        assert by_host.covered == by_kernel.covered == by_host.states


@pytest.mark.parametrize("target", ["ext4-current", "xfs"])
def test_loose_blocks_cost_next_to_nothing(machine: Machine, record: Record, target: str) -> None:
    builder = WorkloadBuilder().creat("A").write("A", 0, 8192 * LOOSE_BLOCKS).begin()
    for block in range(LOOSE_BLOCKS):
        builder.write("A", 8192 * block, 4096)
    workload = builder.build("loose").with_tail()
    recorded = record(target, workload)
    events = explored(machine, recorded, recover=replace(recorded.recover(), map=True), memo=False)
    (loose,) = (i for i in intervals_of(events) if LOOSE_BLOCKS <= i.components <= LOOSE_BLOCKS + 1)
    assert loose.covered == loose.states >= 2**LOOSE_BLOCKS
    assert sum(interval.recoveries for interval in intervals_of(events)) <= 150
    history = instants_of(loose, workload)[-1]
    first, last = f"write:{history.workload.ops[0].tag}", f"write:{history.workload.ops[LOOSE_BLOCKS - 1].tag}"
    answers = set()
    for outcome in loose.outcomes:
        entry = Observation.from_wire(outcome.observation).tree["A"]
        end = 8192 * (LOOSE_BLOCKS - 1)
        question = lambda entry=entry, end=end: (  # noqa: E731
            all_from(entry, 0, 4096, {first}),
            all_from(entry, end, end + 4096, {last}),
        )
        answers |= {answer for answer, _ in every_answer(question)}
    assert answers == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize(("target", "blocks"), [("ext4-current", 200), ("btrfs", 100), ("xfs", 190)])
def test_a_spool_of_hundreds_of_files_is_explored_whole(
    machine: Machine, record: Record, target: str, blocks: int
) -> None:
    builder = WorkloadBuilder().mkdir("spool").begin()
    for number in range(FILES):
        builder.creat(f"spool/{number}").write(f"spool/{number}", 0, 4096)
    recorded = record(target, builder.sync().build("spool"))
    recover = recorded.target.recovery(walk=True, fsck=False)
    intervals = intervals_of(explored(machine, recorded, recover=recover, memo=False))
    assert max(interval.components for interval in intervals) >= blocks
    assert all(interval.left_out is None for interval in intervals)
    assert sum(interval.recoveries for interval in intervals) <= 1000


def test_reading_ahead_less_changes_no_outcome(machine: Machine, record: Record) -> None:
    target = target_named("ext4-current")
    with_readahead = replace(target, recover_options="")
    recorded = record(target, WORKLOADS[0])
    outcomes = []
    for variant in (target, with_readahead):
        intervals = intervals_of(explored(machine, recorded, recover=reading(variant)))
        outcomes.append([{json.dumps(o.observation, sort_keys=True) for o in i.outcomes} for i in intervals])
    assert outcomes[0] == outcomes[1]
