"""Writes with RWF_ATOMIC: what lacks them, what keeps them whole, and what a write without the flag shows.

With --full: xfs of a newer kernel, which has them in software.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from postcrash.checkers.untorn import Untorn
from postcrash.harness.examination.result import instants_of
from postcrash.harness.examination.session import settings_for
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import guest_root
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.machine import Machine
from postcrash.model import Observation, Verdict, Workload, WorkloadBuilder, every_answer
from postcrash.model.judge import Opinion

from .command import postcrash
from .conftest import Record, RecordedWorkload, explored, intervals_of, recording_in

UNTORN = Untorn()
LENGTH = 8192


def ops(set_up: str, recorded: str) -> str:
    return "\n".join([*set_up.split("; "), "---", *recorded.split("; "), ""])


def plain(length: int) -> Workload:
    """A file of four blocks, and a write over its middle without the flag."""
    return WorkloadBuilder().creat("A").append("A", 16384).begin().dwrite("A", 8192, length).build("plain").with_tail()


def as_untorn(recorded: RecordedWorkload) -> RecordedWorkload:
    """The recording, with each direct write taken for one with RWF_ATOMIC."""
    operations = (replace(op, word="awrite") if op.word == "dwrite" else op for op in recorded.workload.ops)
    return replace(recorded, workload=replace(recorded.workload, ops=tuple(operations)))


def opinions(machine: Machine, recorded: RecordedWorkload) -> list[Opinion]:
    """What the checker says of each crash state at each instant."""
    found: list[Opinion] = []
    for interval in intervals_of(explored(machine, recorded)):
        for history, outcome in product(instants_of(interval, recorded.workload), interval.outcomes):
            observation = Observation.from_wire(outcome.observation)
            found.extend(answer for answer, _ in every_answer(partial(UNTORN.check, history, observation)))
    return found


def verdicts(opinions: list[Opinion]) -> set[Verdict]:
    assert any(opinion.relevant for opinion in opinions), "never put to the test"
    return {opinion.verdict for opinion in opinions}


@pytest.mark.parametrize("target", ["ext4-current", "xfs"])
def test_a_write_without_the_flag_is_found_if_it_is_taken_for_one_with_it(
    machine: Machine, record: Record, target: str
) -> None:
    for length, model, torn in ((4096, "torn", True), (4096, "cache", False), (8192, "cache", True)):
        recorded = record(target, plain(length), model)
        assert {opinion.relevant for opinion in opinions(machine, recorded)} == {False}
        judged = verdicts(opinions(machine, as_untorn(recorded)))
        assert judged == ({Verdict.HOLDS, Verdict.VIOLATED} if torn else {Verdict.HOLDS}), (length, model)


@pytest.mark.parametrize("target", ["ext4-current", "btrfs", "xfs"])
@pytest.mark.parametrize("word", ["awrite", "awrite-odsync"])
def test_a_file_system_without_such_writes_lacks_them(tmp_path: Path, target: str, word: str) -> None:
    (tmp_path / "w.ops").write_text(ops("creat a; append a 16K", f"{word} a 8K 8K"))
    result = postcrash(tmp_path, "check", "w.ops", "--target", target)
    assert (result.returncode, result.stdout) == (4, "")
    assert f"EOPNOTSUPP on {target.partition('-')[0]}: {target} does not support {word}" in result.stderr


def test_a_property_of_such_writes_has_no_verdict_where_they_are_lacking(tmp_path: Path) -> None:
    arguments = ("characterize", "--property", "A-untorn", "--target", "xfs", "--one-disk", "--json", "-")
    result = postcrash(tmp_path, *arguments)
    assert result.returncode == 6, result.stderr
    (cell,) = json.loads(result.stdout)["cells"]
    assert (cell["verdict"], cell["recoveries"]) == ("undecided", 0)


# A newer kernel

SET_UPS = {
    "over bytes": "creat a; append a 16K",
    "over blocks and a hole": "creat a; write a 8K 4K; truncate a 16K",
    "over unwritten blocks": "creat a; fallocate a none 0 16K",
    "over shared blocks": "creat a; append a 16K; creat b; reflink a 0 b 0 16K",
    "beyond the end": "creat a; append a 8K",
}


@pytest.fixture(scope="module")
def newer(newer_kernel: Kernel) -> Iterator[Machine]:
    """A guest with the newer kernel."""
    with Machine(settings_for(newer_kernel, guest_root(newer_kernel, cache_folder()))) as booted:
        yield booted


@pytest.mark.full
@pytest.mark.parametrize(
    ("set_up", "word"),
    [*((set_up, "awrite") for set_up in SET_UPS), ("over bytes", "awrite-odsync"), ("beyond the end", "awrite-odsync")],
)
def test_xfs_tears_none(tmp_path: Path, newer_kernel: Kernel, set_up: str, word: str) -> None:
    (tmp_path / "w.ops").write_text(ops(SET_UPS[set_up], f"{word} a 8K {LENGTH}"))
    judges = ("--judge", "untorn,durability")
    drive = ("--target", "xfs", "--kernel", newer_kernel.path.parent.name, "--model", "torn")
    result = postcrash(tmp_path, "check", "w.ops", *drive, *judges, "--json", "-")
    assert result.returncode == 0, result.stderr or result.stdout
    report = json.loads(result.stdout)
    assert (report["verdict"], report["judges"]["untorn"]["verdict"]) == ("holds", "holds")
    assert report["states"] == report["states_total"]


@pytest.mark.full
def test_xfs_tears_a_write_without_the_flag(newer: Machine, tmp_path: Path) -> None:
    recorded = recording_in(tmp_path, newer)("xfs", plain(LENGTH), "cache")
    assert verdicts(opinions(newer, as_untorn(recorded))) == {Verdict.HOLDS, Verdict.VIOLATED}


@pytest.mark.full
@pytest.mark.parametrize("length", ["2K", "8M"])
def test_a_length_beyond_the_limits_is_lacking(tmp_path: Path, newer_kernel: Kernel, length: str) -> None:
    (tmp_path / "w.ops").write_text(ops("creat a; append a 16M", f"awrite a 8M {length}"))
    result = postcrash(tmp_path, "check", "w.ops", "--target", "xfs", "--kernel", newer_kernel.path.parent.name)
    assert (result.returncode, result.stdout) == (4, "")
    assert "EINVAL on xfs: xfs does not support awrite" in result.stderr


@pytest.mark.full
@pytest.mark.parametrize("target", ["ext4-current", "btrfs", "xfs-no-reflink"])
def test_other_file_systems_of_the_newer_kernel_lack_them(tmp_path: Path, newer_kernel: Kernel, target: str) -> None:
    (tmp_path / "w.ops").write_text(ops("creat a; append a 16K", "awrite a 8K 8K"))
    result = postcrash(tmp_path, "check", "w.ops", "--target", target, "--kernel", newer_kernel.path.parent.name)
    assert (result.returncode, result.stdout) == (4, "")
    assert f"{target} does not support awrite" in result.stderr
