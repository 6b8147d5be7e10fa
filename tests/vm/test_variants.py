"""Each variant of a target mounts, runs a workload, and recovers without a false alarm."""

import json
from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.kernels.suitability import why_unsuitable
from postcrash.targets import VARIANTS

from .command import postcrash

WORKLOAD = (
    "mkdir D\ncreat a\nappend a 5000\nrename a D/b\nsync\n---\nwrite D/b 0 4096\nfsync D/b\ncreat c\nlink c D/d\n"
)
ELSEWHERE = {"ext4-casefold", "ext4-encrypt", "f2fs-compress", "f2fs-encrypt"}
"""What user-mode Linux of Debian is not built for."""
SAMPLE = {"ext4-quota", "ext4-no-journal", "xfs-small-log", "btrfs-quota", "f2fs-quota"}
JUDGES = "mounts,kernel-log,fsck,link-counts,usable"


def test_a_kernel_says_which_variants_it_was_not_built_for() -> None:
    kernel = find_kernel()
    assert {target.name for target in VARIANTS if why_unsuitable(kernel, target)} == ELSEWHERE


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(target.name, marks=[] if target.name in SAMPLE else pytest.mark.full)
        for target in VARIANTS
        if target.name not in ELSEWHERE
    ],
)
def test_a_variant_is_consistent_after_a_crash(name: str, tmp_path: Path) -> None:
    check(tmp_path, name)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_variant_is_consistent_after_a_crash_on_an_image(name: str, tmp_path: Path) -> None:
    check(tmp_path, name, "--kernel", "6.1", "--engine", "qemu")


def check(folder: Path, name: str, *more: str) -> None:
    (folder / "w.ops").write_text(WORKLOAD)
    judges = [word for judge in JUDGES.split(",") for word in ("--judge", judge)]
    done = postcrash(folder, "check", "w.ops", "--target", name, "--budget", "100", *judges, "--json", "-", *more)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout)["verdict"] != "violated"
