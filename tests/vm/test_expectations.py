"""A hunt finds a kernel that keeps every document's promise but not developers' expectations, and no other kernel."""

from pathlib import Path

import pytest

from postcrash.model import ExitCode

from .command import postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant
from .test_hunt import report

HUNT = ("hunt", "--ops", "1", "--workload-limit", "20", "--no-minimize", "--json", "-")


def test_an_fsync_that_does_nothing_is_found_though_no_document_promises_names(tmp_path: Path) -> None:
    kernel = mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS)
    asked = (*HUNT, "--target", "ext4-current", "--kernel", str(kernel.path), "--seed", "3")
    found = report(postcrash(tmp_path, *asked), ExitCode.VIOLATED)
    assert found["expect"] == "practice"
    meanings = {group["checker"]: group["meaning"] for group in found["groups"]}
    assert meanings["fsync-names"].startswith("broken in practice: fsync-keeps-names (fstests generic/")


@pytest.mark.parametrize("target", ["ext4-journal", "btrfs", "xfs"])
def test_file_systems_do_what_is_expected_of_them(tmp_path: Path, target: str) -> None:
    held = report(postcrash(tmp_path, *HUNT, "--target", target), ExitCode.HOLDS)
    assert held["tested"]["fsync-names"] > 0
    assert held["tested"]["one-name"] > 0
    assert ("null-files" in held["tested"]) == (target == "xfs")


@pytest.mark.parametrize(("target", "code"), [("ext4-current", ExitCode.HOLDS), ("ext4-original", ExitCode.VIOLATED)])
def test_a_file_that_is_replaced_in_place_is_empty_without_auto_da_alloc_only(
    tmp_path: Path, target: str, code: ExitCode
) -> None:
    lines = ("creat a", "write a 0 8192", "---", "open a", "truncate @a 0", "write @a 0 5000", "close @a")
    (tmp_path / "w.ops").write_text("\n".join(lines))
    asked = ("check", "w.ops", "--target", target, "--judge", "in-place", "--held", "1", "--json", "-")
    assert report(postcrash(tmp_path, *asked), code)["judges"]["in-place"]["verdict"] == code.name.lower()
