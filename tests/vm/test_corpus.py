"""A folder of workloads on several kernels and targets: what breaks one kernel is found there, and only there."""

import json
from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.model import ExitCode

from .command import one_line, postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant

WORKLOADS = {
    "fsynced": "creat a\nappend a 4096\nfsync a\n",
    "shared": "creat a\nwrite a 0 8192\ncreat b\nreflink a 4096 b 0 4096\nfsync b\n",
    "btrfs-only": "creat a\nfsync a\n",
    "full": "creat a\nfallocate a none 0 30M\nfsync a\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = tmp_path / "bugs"
    corpus.mkdir()
    for name, text in WORKLOADS.items():
        (corpus / f"{name}.ops").write_text(text)
    return tmp_path


def test_an_fsync_that_does_nothing_is_found_on_its_kernel_only(folder: Path) -> None:
    planted, stock = mutant(folder, "ext4_sync_file", RETURN_SUCCESS).path, find_kernel().path
    asked = ("--target", "ext4-current,btrfs", "--kernel", f"{stock},{planted}", "--json", "c.json")
    done = postcrash(folder, "corpus", "bugs", *asked, "--markdown", "c.md")
    assert done.returncode == ExitCode.VIOLATED, done.stderr
    told = json.loads((folder / "c.json").read_text())
    good, bad = ({(each["workload"], each["target"]): each for each in kernel["results"]} for kernel in told["kernels"])
    assert {place: each["verdict"] for place, each in good.items() if not each["absent"]} == {
        ("fsynced", "ext4-current"): "holds",
        ("full", "ext4-current"): "undecided",
        ("fsynced", "btrfs"): "holds",
        ("shared", "btrfs"): "holds",
        ("btrfs-only", "btrfs"): "holds",
        ("full", "btrfs"): "holds",
    }
    assert "ENOSPC" in good["full", "ext4-current"]["reason"]
    assert "reflink" in good["shared", "ext4-current"]["absent"]
    (objection,) = bad["fsynced", "ext4-current"]["objections"]
    assert (objection["judge"], objection["is_expected"]) == ("fsync-names", True)
    assert [place for place, each in bad.items() if each["objections"]] == [("fsynced", "ext4-current")]
    row = next(line for line in (folder / "c.md").read_text().splitlines() if line.startswith("| fsynced |"))
    assert row == "| fsynced | ✓✗\\* | ✓✓ |"
    again = postcrash(folder, "corpus", "bugs", *asked)
    assert again.returncode == ExitCode.VIOLATED
    assert postcrash(folder, "explain", objection["finding"]).returncode == ExitCode.HOLDS


def test_documents_alone_have_nothing_against_that_kernel(folder: Path) -> None:
    planted = mutant(folder, "ext4_sync_file", RETURN_SUCCESS).path
    asked = ("--target", "ext4-current", "--kernel", str(planted), "--expect", "documents", "--json", "-")
    told = json.loads(postcrash(folder, "corpus", "bugs", *asked).stdout)
    assert not any(each["objections"] for kernel in told["kernels"] for each in kernel["results"])


def test_what_the_checkpoint_leaves_undecided_holds_without_it(folder: Path) -> None:
    """Linux 6.1's xfs writes more metadata back than 200 recoveries can tell apart; brute force would need 2 ** 22."""
    workload = Path(__file__).parents[2] / "corpus/fstests/generic-039.ops"
    (folder / "one").mkdir()
    (folder / "one/generic-039.ops").write_text(workload.read_text())
    told = json.loads(
        postcrash(folder, "corpus", "one", "--target", "xfs", "--budget", "200,600s", "--json", "-").stdout
    )
    (result,) = told["kernels"][0]["results"]
    assert (result["verdict"], result["shorter_holds"]) == ("undecided", True)


def test_what_time_did_not_suffice_for_is_undecided_and_run_by_the_next_command(folder: Path) -> None:
    asked = ("corpus", "bugs", "--target", "btrfs", "--json", "-")
    first = postcrash(folder, *asked, "--time", "1s")
    results = json.loads(first.stdout)["kernels"][0]["results"]
    late = [each for each in results if each["verdict"] != "holds"]
    assert {(each["verdict"], each["reason"]) for each in late} <= {("undecided", "it was not run: --time")}
    assert (first.returncode == ExitCode.UNDECIDED) == bool(late)
    assert postcrash(folder, *asked).returncode == ExitCode.HOLDS


def test_what_cannot_be_asked_is_told_in_one_line(folder: Path) -> None:
    (folder / "none").mkdir()
    nothing = postcrash(folder, "corpus", "none")
    assert "has no file whose name ends in .ops" in one_line(nothing, ExitCode.NOTHING_SELECTED)
    (folder / "bugs/broken.ops").write_text("creat a\ncreate b\n")
    broken = postcrash(folder, "corpus", "bugs")
    assert "bugs/broken.ops:2:1: expected an operation (perhaps creat)" in one_line(broken, ExitCode.USAGE)
