"""Two builds of one kernel version in one store: each gets a verdict of its own."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.files.places import STORE_DEFAULT
from postcrash.harness.guests.kernels.kernel import find_kernel, uml_version
from postcrash.model import ExitCode
from postcrash.store.store import Store

from .command import one_line, postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant

WORKLOAD = "creat a\n---\nappend a 4096\nfsync a\n"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock kernel, except that fsync of ext4 does nothing."""
    return mutant(tmp_path_factory.mktemp("kernel"), "ext4_sync_file", RETURN_SUCCESS).path


def checked(folder: Path, kernel: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the output of `check` with that kernel."""
    (folder / "append.ops").write_text(WORKLOAD)
    arguments = ("--target", "ext4-current", "--judge", "durability", "--kernel", str(kernel), "--json", "-")
    ran = postcrash(folder, "check", "append.ops", *arguments)
    assert ran.returncode in (ExitCode.HOLDS, ExitCode.VIOLATED), ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def test_the_second_build_gets_a_verdict_of_its_own(tmp_path: Path, broken: Path) -> None:
    stock = find_kernel().path
    assert uml_version(stock) == uml_version(broken)
    codes = [checked(tmp_path, kernel)[0] for kernel in (stock, broken, stock)]
    assert codes == [ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.HOLDS]


def test_findings_of_two_builds_stand_beside_each_other(tmp_path: Path, broken: Path) -> None:
    """Two programs have the same bug: the second differs in one byte that is never run."""
    other = tmp_path / "other"
    other.write_bytes(broken.read_bytes() + b"\0")
    other.chmod(0o755)
    ids = [finding["id"] for kernel in (broken, other) for finding in checked(tmp_path, kernel)[1]["findings"]]
    assert len(ids) == len(set(ids)) == 2
    for id in ids:
        assert postcrash(tmp_path, "explain", id).returncode == ExitCode.HOLDS
    again = postcrash(tmp_path, "repro", ids[0], "--kernel", str(other))
    assert "another kernel: it was found on UML" in again.stdout


def test_a_finding_takes_its_own_kernel_whatever_its_name_stands_for_now(tmp_path: Path, broken: Path) -> None:
    """The kernel's file is built anew, without the bug, after the finding was made."""
    mine, cache = tmp_path / "linux", tmp_path / "cache"
    shutil.copy(broken, mine)
    run = partial(postcrash, tmp_path, POSTCRASH_CACHE=str(cache))
    (tmp_path / "append.ops").write_text(WORKLOAD)
    asked = ("--target", "ext4-current", "--judge", "durability", "--kernel", str(mine), "--json", "-")
    (finding,) = json.loads(run("check", "append.ops", *asked).stdout)["findings"]
    assert finding["built"]["name"] == "linux"
    shutil.copy(find_kernel().path, mine)
    again = run("repro", finding["id"], "--json", "-")
    assert (again.returncode, json.loads(again.stdout)["unlike_found"]) == (ExitCode.VIOLATED, "")
    smallest = run("minimize", finding["id"], "--json", "-")
    assert smallest.returncode == ExitCode.VIOLATED, smallest.stderr
    kept = Store(tmp_path / STORE_DEFAULT).finding(finding["id"])
    flipped = run("repro", finding["id"], "--flip", "--kernel", str(mine), "--json", "-")
    assert json.loads(flipped.stdout)["unlike_found"].startswith("another kernel: ")
    assert Store(tmp_path / STORE_DEFAULT).finding(finding["id"]) == kept
    mended = run("minimize", finding["id"], "--fresh", "--kernel", str(mine))
    assert "another kernel: it was found on UML" in mended.stderr
    assert "does not break durability any more" in mended.stderr
    certified = run("certify", "--samples", "3", "--json", "-")
    assert json.loads(certified.stdout)["confirmed"] == 3, certified.stderr
    shutil.rmtree(cache / "kernel-files")
    gone = f"postcrash: {finding['id']}: the kernel that it was found on is not here any more: UML"
    assert one_line(run("repro", finding["id"]), ExitCode.USAGE).startswith(gone)


def test_a_gate_runs_two_builds_beside_each_other(tmp_path: Path, broken: Path) -> None:
    stock = find_kernel().path
    (tmp_path / "own.ops").write_text(WORKLOAD)
    (tmp_path / "postcrash.toml").write_text(
        f'targets = ["ext4-current"]\nkernels = ["{stock}", "{broken}"]\nexpect = "documents"\ndisks = "one"\n'
        'confirm = 0\n[parts.own]\ncorpus = "own.ops"\n'
    )
    done = postcrash(tmp_path, "gate", "--json", "gate.json", "--junit", "gate.xml")
    assert done.returncode == ExitCode.VIOLATED, done.stderr
    told = json.loads((tmp_path / "gate.json").read_text())
    label = f"UML {uml_version(stock)}"
    labels = [f"{label} ({stock})", f"{label} ({broken})"]
    assert [(part["kernel"], part["verdict"]) for part in told["parts"]] == [
        (labels[0], "holds"),
        (labels[1], "violated"),
    ]
    assert [len({told["kernels"][each][what] for each in labels}) for what in ("content", "build_id")] == [2, 1]
    assert all(each in (tmp_path / "gate.xml").read_text() for each in labels)


def test_certificates_of_another_build_are_not_tried(tmp_path: Path, broken: Path) -> None:
    checked(tmp_path, broken)
    refused = postcrash(tmp_path, "certify", "--kernel", str(find_kernel().path))
    assert refused.returncode == ExitCode.USAGE
    assert "another build of UML" in refused.stderr
