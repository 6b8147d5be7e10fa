"""Two kernels, or two targets, compared outcome by outcome."""

from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.model import ExitCode

from .command import EXAMPLE, postcrash
from .mutant_kernel import NOT_SUPPORTED, RETURN_SUCCESS, mutant
from .test_hunt import report

HUNT = ("hunt", "--ops", "1", "--workload-limit", "6", "--one-disk", "--no-minimize", "--json", "-")


@pytest.mark.parametrize("target", ["ext4-current", "xfs"])
def test_a_kernel_shows_nothing_that_it_does_not_show(tmp_path: Path, target: str) -> None:
    stock = find_kernel().path
    found = report(postcrash(tmp_path, *HUNT, "--target", target, "--expect", f"kernel:{stock}"), ExitCode.HOLDS)
    assert found["tested"] == {f"same-as:kernel:{stock}": found["workloads"]["run"]}


def test_an_fsync_that_does_nothing_is_a_change_that_can_be_minimized_and_run_again(tmp_path: Path) -> None:
    stock, changed = find_kernel().path, mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS).path
    (tmp_path / "w.ops").write_text("creat a\nappend a 5000\nfsync a\nunlink a\n")
    asked = ("check", "w.ops", "--target", "ext4-current", "--expect", f"kernel:{stock}", "--kernel", str(changed))
    found = report(postcrash(tmp_path, *asked, "--minimize", "--json", "-"), ExitCode.VIOLATED)
    (finding,), (minimal,) = found["findings"], found["minimal"]
    assert finding["message"] == f"a is missing; kernel:{stock} never shows this"
    assert len(minimal["workload"].splitlines()) < 4
    again = postcrash(tmp_path, "repro", finding["id"], "--kernel", str(changed))
    assert again.returncode == ExitCode.VIOLATED, again.stderr
    told = postcrash(tmp_path, "explain", finding["id"]).stdout
    assert "✗ fsync-names: fsync a (operation 3) had returned, but a is missing; broken in practice: fsync-" in told
    text = reported(tmp_path, finding["id"], "--fstests", "999")
    assert f"on kernel:{stock}: file, " in " ".join(text.split()) and "# ext4-current, fsync-names: " in text
    assert "[ ! -e a ]" in (tmp_path / "999").read_text()


def reported(folder: Path, finding: str, *more: str) -> str:
    """The mail about a finding whose script was run once and shows it."""
    done = postcrash(folder, "report", finding, "--try", "--times", "1", "-o", "mail.txt", *more)
    assert done.returncode == ExitCode.HOLDS, done.stderr
    assert ": form 1 of " in done.stderr
    text = (folder / "mail.txt").read_text()
    assert "shows it: 1 of 1 times." in text
    return text


def test_an_operation_that_only_one_kernel_has_is_not_passed_over(tmp_path: Path) -> None:
    stock, changed = find_kernel().path, mutant(tmp_path, "ext4_fallocate", NOT_SUPPORTED).path
    asked = (*HUNT, "--target", "ext4-current", "--workload-limit", "12", "--kernel", str(changed), "--expect")
    alike = report(postcrash(tmp_path, *asked, f"kernel:{changed}"), ExitCode.HOLDS)
    assert sum(alike["workloads"]["lacking"].values()) > 0
    unlike = report(postcrash(tmp_path, *asked, f"kernel:{stock}"), ExitCode.UNDECIDED)
    said = {f"{reason}, but kernel:{stock} runs it": count for reason, count in alike["workloads"]["lacking"].items()}
    assert (unlike["workloads"]["refused"], unlike["workloads"]["lacking"]) == (said, {})


def test_mount_options_are_compared(tmp_path: Path) -> None:
    """Without auto_da_alloc, ext4 replaces a file by an empty one."""
    asked = ("check", str(EXAMPLE), "--target", "ext4-original", "--expect", "target:ext4-current", "--json", "-")
    findings = report(postcrash(tmp_path, *asked), ExitCode.VIOLATED)["findings"]
    empty = next(finding for finding in findings if "has size 0, not" in finding["message"])
    text = reported(tmp_path, empty["id"])
    assert "do not object to this state" in " ".join(text.split())
    assert "#   target:ext4-current never showed this after a crash at this instant" in text
    refused = postcrash(tmp_path, "report", empty["id"], "--try", "--times", "1", "-o", "other.txt", "--fstests", "999")
    assert (refused.returncode, (tmp_path / "other.txt").exists()) == (ExitCode.USAGE, False)
    assert refused.stderr.startswith(f"postcrash: {empty['id']}: there is no test of fstests: "), "nothing was run"


def test_what_it_is_compared_with_has_to_be_there(tmp_path: Path) -> None:
    asked = ("check", str(EXAMPLE), "--target", "ext4-current", "--expect")
    nothing = postcrash(tmp_path, *asked, "kernel:9.99")
    assert (nothing.returncode, nothing.stdout) == (ExitCode.USAGE, "")
    assert "9.99" in nothing.stderr
    other = postcrash(tmp_path, *asked, "target:ext5")
    assert (other.returncode, len(other.stderr.splitlines())) == (ExitCode.USAGE, 1)
