"""A kernel that the user names by its file is booted as it was when it was chosen."""

import os
import re
import shutil
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.kernels import copies
from postcrash.harness.guests.kernels.copies import UNUSED_SECONDS_MAX, kernel_copy
from postcrash.harness.guests.kernels.stock import KernelParts, Stock, choose_kernel

from .test_stock import uml

_PAST = UNUSED_SECONDS_MAX + 100


def kept(folder: Path) -> set[Path]:
    """The copies in a cache folder, and whatever was left beside them."""
    return set((folder / "kernel-files").iterdir())


def test_a_kernel_that_is_built_again_does_not_change_the_one_that_was_chosen(tmp_path: Path) -> None:
    mine = uml(tmp_path / "linux", body=b"first")
    first = choose_kernel("auto", str(mine), tmp_path)
    with mine.open("r+b") as file:  # as linkers do that write into the old file
        file.write(mine.read_bytes().replace(b"first", b"other").replace(b"6.98.0", b"6.98.1"))
    second = choose_kernel("auto", str(mine), tmp_path)
    assert first.path.read_bytes().endswith(b"first") and second.path.read_bytes().endswith(b"other")
    assert [each.label for each in (first, second)] == ["UML 6.98.0", "UML 6.98.1"]
    assert os.access(first.path, os.X_OK)


def test_the_user_s_own_file_is_the_one_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = uml(tmp_path / "linux")
    monkeypatch.chdir(tmp_path)
    chosen = choose_kernel("auto", "linux", tmp_path)
    assert (chosen.given, chosen.known_as) == (mine, mine)
    assert chosen.path.is_relative_to(tmp_path / "kernel-files")


def test_a_kernel_of_the_stock_is_copied_too_because_it_can_be_replaced(tmp_path: Path) -> None:
    stocked = Stock(tmp_path).add("mine", KernelParts(uml(tmp_path / "linux"), None, None, "here"))
    chosen = choose_kernel("auto", "mine", tmp_path)
    assert (chosen.given, chosen.known_as, chosen.name) == (stocked.path, stocked.path, "mine")
    assert chosen.path.parent.parent == tmp_path / "kernel-files"


def test_the_same_content_has_one_copy(tmp_path: Path) -> None:
    one, same = uml(tmp_path / "one"), uml(tmp_path / "same")
    assert kernel_copy(one, tmp_path) == kernel_copy(one, tmp_path) == kernel_copy(same, tmp_path)
    assert len(kept(tmp_path)) == 1


def test_the_configuration_beside_a_kernel_is_copied_with_it(tmp_path: Path) -> None:
    mine, config = uml(tmp_path / "linux"), tmp_path / "config"
    without = kernel_copy(mine, tmp_path)
    config.write_text("CONFIG_DM_LOG_WRITES=y\n")
    assert kernel_copy(mine, tmp_path).with_name("config").read_text() == config.read_text()
    assert not without.with_name("config").exists()


def test_a_copy_is_named_by_what_was_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written between the moment when its digest is taken and the moment when it is copied."""
    mine, digests = uml(tmp_path / "linux", body=b"first"), []

    def digest_then_build(path: Path) -> str:
        digests.append(content_digest(path))
        if path == mine:
            uml(mine, body=b"second")
        return digests[-1]

    monkeypatch.setattr(copies, "content_digest", digest_then_build)
    copy = kernel_copy(mine, tmp_path)
    assert copy.read_bytes().endswith(b"second")
    assert kernel_copy(mine, tmp_path) == copy
    assert kept(tmp_path) == {copy.parent}


def test_copies_that_nobody_used_for_long_are_removed(tmp_path: Path) -> None:
    old, used, new = (uml(tmp_path / name, body=name.encode()) for name in ("old", "used", "new"))
    copied = {path: kernel_copy(path, tmp_path) for path in (old, used)}
    for copy in copied.values():
        os.utime(copy.parent, (copy.stat().st_mtime - _PAST,) * 2)
    kernel_copy(used, tmp_path)
    kernel_copy(new, tmp_path)
    assert not copied[old].exists() and copied[used].exists()


def test_a_copy_that_cannot_be_made_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    mine = uml(tmp_path / "linux")
    monkeypatch.setattr(shutil, "copy", full)
    said = f"{mine} cannot be copied to {tmp_path}/kernel-files: No space left on device"
    with pytest.raises(InfrastructureError, match=re.escape(said)):
        kernel_copy(mine, tmp_path)
    assert kept(tmp_path) == set()
