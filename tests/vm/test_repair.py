"""Recovery as distributions do it, fsck -a and then the mount. A repair that does harm is found, and only that."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.examination.examiner import examine
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named, recoveries_for
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.repair import ONLY_REPAIRED, Recovery
from postcrash.harness.examination.result import Examination
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.guest_root import cached_root, guest_root
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.kernels.programs import fetch_e2fsck
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.harness.guests.program_files import Content, with_libraries
from postcrash.model import Verdict, Workload, WorkloadBuilder
from postcrash.reports.explanation import explanation
from postcrash.targets import Target, base_image, target_named

from .command import postcrash
from .conftest import Record, executions, explored, intervals_of, root_files
from .test_exploration import outcomes

EXT4 = target_named("ext4-current")
JUDGES = ("mounts", "boots", "durability", "fsync-names", "never-written", "link-counts")
WORKLOADS = [
    WorkloadBuilder().creat("A").begin().write("A", 0, 8192).fsync("A").creat("B").sync().build("fsynced"),
    WorkloadBuilder().creat("A").begin().creat("B").append("B", 100).fsync("B").rename("B", "A").sync().build("rename"),
    WorkloadBuilder().mkdir("D").creat("D/a").begin().link("D/a", "b").unlink("D/a").fsync("b").build("link"),
]
PLANTED = {
    "harmless": "exec /sbin/e2fsck -p $1",
    "unlinks": "/sbin/e2fsck -p $1; exec /sbin/debugfs -w -R 'unlink A' $1",
    "truncates": "/sbin/e2fsck -p $1; exec /sbin/debugfs -w -R 'set_inode_field A size 0' $1",
    "asks": "exit 4",
    "killed": "kill -9 $$",
    "reboots": "/sbin/e2fsck -p $1; exit 3",
}
"""Shell scripts that take e2fsck's place. The disk is their argument."""


@pytest.fixture(scope="module")
def planted() -> MachineSettings:
    """Guests that also have a shell, debugfs and the planted programs."""
    kernel = find_kernel()
    files: dict[Path, Content] = {**root_files(kernel)}
    for program in (shutil.which("sh"), shutil.which("debugfs", path="/usr/sbin:/sbin")):
        assert program is not None
        files |= with_libraries(program)
    files |= {Path("bin/sh"): files[Path("usr/bin/sh")], Path("sbin/debugfs"): files[Path("usr/sbin/debugfs")]}
    for name, text in PLANTED.items():
        files[Path("sbin") / name] = f"#!/bin/sh\n{text}\n".encode()
    return MachineSettings(kernel.path, cached_root(files, cache_folder()))


def examined(
    machine: Machine, folder: Path, target: Target, workload: Workload, recovery: Recovery, judges: tuple[str, ...]
) -> Examination:
    chosen = judges_named(judges)
    plan = Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel="any",
        guest="any",
        workload=workload.with_tail(),
        judges=chosen,
        recoveries=recoveries_for(chosen, target, recovery),
        how=Exploration(recovery=recovery),
        explainer=explanation,
    )
    return examine(machine, plan, folder / "run.pcr", lambda _: None)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_ext4_is_as_good_after_e2fsck(machine: Machine, tmp_path: Path, workload: Workload) -> None:
    result = examined(machine, tmp_path, EXT4, workload, "both", JUDGES)
    assert {name: ruling.verdict for name, ruling in result.rulings.items()} == dict.fromkeys(JUDGES, Verdict.HOLDS)
    assert result.rulings["boots"].relevant
    assert result.covered == result.states


@pytest.mark.parametrize("target", ["ext4-current", pytest.param("ext3-ordered", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "workload", [WORKLOADS[0], pytest.param(WORKLOADS[1], marks=pytest.mark.full)], ids=lambda workload: workload.name
)
def test_the_lazy_walk_agrees_with_brute_force(
    machine: Machine, record: Record, target: str, workload: Workload
) -> None:
    recorded = record(target, workload)
    recover = recorded.target.recovery(walk=True, fsck=False, repair=True).by_kernel()
    lazy = intervals_of(explored(machine, recorded, recover=recover))
    small = [interval.index for interval in lazy if interval.components <= 7]
    brute = intervals_of(explored(machine, recorded, recover=recover, brute_force=True, intervals=small))
    assert max(interval.components for interval in brute) >= 4
    by_index = {interval.index: interval for interval in lazy}
    for exhaustive in brute:
        assert exhaustive.recoveries == exhaustive.contents
        assert outcomes(by_index[exhaustive.index]) == outcomes(exhaustive)
        assert executions(by_index[exhaustive.index]) <= exhaustive.recoveries


@pytest.mark.parametrize(
    "target", ["f2fs", "vfat", *(pytest.param(name, marks=pytest.mark.full) for name in ("minix", "jfs", "reiserfs"))]
)
def test_other_file_systems_are_repaired_too(machine: Machine, tmp_path: Path, target: str) -> None:
    """Hunts check the promises of these. Here every state is repaired, mounted and judged."""
    result = examined(machine, tmp_path, target_named(target), WORKLOADS[0], "repair", ("boots", "never-written"))
    assert result.rulings["boots"].relevant
    assert result.covered == result.states
    assert not result.lost_guests


CANARIES = [
    ("harmless", {}),
    ("reboots", {}),
    ("unlinks", {"durability": Verdict.VIOLATED}),
    ("truncates", {"durability": Verdict.VIOLATED}),
    ("asks", {"boots": Verdict.VIOLATED, "durability": Verdict.UNDECIDED}),
    ("killed", {"boots": Verdict.UNDECIDED, "durability": Verdict.UNDECIDED}),
]


@pytest.mark.parametrize(("program", "expected"), CANARIES, ids=[name for name, _ in CANARIES])
def test_a_planted_repair_is_found(
    planted: MachineSettings, tmp_path: Path, program: str, expected: dict[str, Verdict]
) -> None:
    target = replace(EXT4, name=f"ext4-{program}", repair=(f"/sbin/{program}",))
    with Machine(planted) as machine:
        result = examined(machine, tmp_path, target, WORKLOADS[0], "both", ("boots", "durability"))
    verdicts = {name: ruling.verdict for name, ruling in result.rulings.items()}
    assert verdicts == {**dict.fromkeys(("boots", "durability"), Verdict.HOLDS), **expected}
    broken = {name for name, verdict in expected.items() if verdict is Verdict.VIOLATED}
    assert {finding.checker for finding in result.findings} == broken
    for finding in result.findings:
        assert finding.message.startswith(f"after {program}: ")
        assert finding.message.endswith(ONLY_REPAIRED)


def test_a_finding_of_a_repair_is_minimized_and_shown_again(tmp_path: Path) -> None:
    """e2fsck throws the journal away if a fast commit is older than the last commit: docs/findings/."""
    (tmp_path / "w.ops").write_text("creat A\ncreat B\nappend A 4096\nfsync A\n")
    asked = ("--target", "ext4-fast-commit", "--recovery", "both", "--judge", "durability", "--judge", "mounts")
    result = postcrash(tmp_path, "check", "w.ops", *asked, "--minimize", "--json", "-")
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    assert report["judges"]["mounts"]["verdict"] == "undecided"
    messages = {finding["checker"]: finding["message"] for finding in report["findings"]}
    assert set(messages) == {"durability"}
    assert messages["durability"].startswith("after e2fsck -p: ")
    assert messages["durability"].endswith(ONLY_REPAIRED)
    (minimal,) = report["minimal"]
    assert minimal["message"].endswith(ONLY_REPAIRED)
    again = postcrash(tmp_path, "repro", minimal["minimal"], "--times", "2")
    assert again.returncode == 1
    assert "fails 2 of 2 times" in again.stdout
    explained = postcrash(tmp_path, "explain", minimal["minimal"])
    assert "repair before the mount, exit status 1" in explained.stdout
    script = tmp_path / "reproduce.sh"
    postcrash(tmp_path, "report", minimal["minimal"], "--script", str(script), "-o", "report.txt")
    assert "/sbin/e2fsck -p /dev/mapper/cut || status=$?" in script.read_text()


@pytest.mark.parametrize("suite", ["trixie", pytest.param("bullseye", marks=pytest.mark.full)])
def test_e2fsck_of_another_suite_repairs_as_well(tmp_path: Path, suite: str) -> None:
    program, kernel = fetch_e2fsck(suite, cache_folder()), find_kernel()
    target = replace(EXT4, name=f"ext4-{suite}", repair=(str(program), "-p"))
    settings = MachineSettings(kernel.path, guest_root(kernel, cache_folder(), [target]))
    with Machine(settings) as machine:
        result = examined(machine, tmp_path, target, WORKLOADS[0], "repair", ("boots", "durability"))
    assert {ruling.verdict for ruling in result.rulings.values()} == {Verdict.HOLDS}
    assert result.rulings["boots"].relevant
