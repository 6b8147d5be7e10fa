"""A kernel is found again by what is in its file, wherever this machine has it, and whatever its name is today."""

import os
from pathlib import Path

import pytest

from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.kernels.by_content import kernels_here, kernels_with
from postcrash.harness.guests.kernels.copies import UNUSED_SECONDS_MAX
from postcrash.harness.guests.kernels.stock import KernelParts, Stock, choose_kernel

from .test_stock import uml


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a machine on which no user-mode Linux is installed."""
    monkeypatch.setenv("POSTCRASH_UML", str(tmp_path / "installed"))
    return tmp_path / "cache"


def test_the_copy_of_a_file_is_found_after_the_file_was_built_anew(cache: Path, tmp_path: Path) -> None:
    mine = uml(tmp_path / "linux", body=b"first")
    first = choose_kernel("auto", str(mine), cache)
    content = content_digest(first.path)
    uml(mine, body=b"second")
    second = choose_kernel("auto", str(mine), cache)
    os.utime(first.path.parent, (first.path.stat().st_mtime - UNUSED_SECONDS_MAX,) * 2)
    assert [each.path for each in kernels_with(content, cache)] == [first.path]
    assert first.path.parent.stat().st_mtime > second.path.stat().st_mtime - 100
    assert {each.path for each in kernels_here(cache)} == {first.path, second.path}


def test_a_name_that_stands_for_another_build_does_not_find_it(cache: Path, tmp_path: Path) -> None:
    stock = Stock(cache)
    old = stock.add("mine", KernelParts(uml(tmp_path / "linux", body=b"first"), None, None, "here"))
    content = content_digest(old.path)
    assert next(kernels_with(content, cache)).name == "mine"
    stock.add("mine", KernelParts(uml(tmp_path / "linux", body=b"second"), None, None, "here"), replaces=True)
    assert [each.name for each in kernels_with(content, cache)] == [""]
    assert next(kernels_with(content, cache)).path.read_bytes().endswith(b"first")


def test_the_installed_kernel_may_have_changed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTCRASH_UML_MODULES", str(tmp_path))
    (tmp_path / "6.98.0").mkdir()
    installed = uml(tmp_path / "installed")
    content = content_digest(installed)
    assert [each.path for each in kernels_with(content, cache)] == [installed]
    uml(installed, body=b"upgraded")
    assert list(kernels_with(content, cache)) == []


def test_a_kernel_that_this_machine_cannot_run_is_left_out(cache: Path, tmp_path: Path) -> None:
    mine = uml(tmp_path / "linux")
    copy = choose_kernel("auto", str(mine), cache).path
    copy.chmod(0o644)
    assert list(kernels_with(content_digest(copy), cache)) == []
