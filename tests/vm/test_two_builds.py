"""Two builds of one kernel version in one store: each gets a verdict of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel, uml_version
from postcrash.model import ExitCode

from .command import postcrash
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
    assert "found on another build of it" in again.stdout


def test_certificates_of_another_build_are_not_tried(tmp_path: Path, broken: Path) -> None:
    checked(tmp_path, broken)
    refused = postcrash(tmp_path, "certify")
    assert refused.returncode == ExitCode.USAGE
    assert "another build of UML" in refused.stderr
