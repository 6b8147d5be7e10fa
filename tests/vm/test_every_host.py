"""User-mode Linux runs on a host whose XSAVE area is larger than it expects. A preloaded library feigns this here.

tests/unit/harness/test_xstate.py tries the library against ptrace itself.
"""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.harness.guests.script_guest import run_script, script_root
from postcrash.targets import target_named

from .command import ROOT, postcrash


@pytest.fixture(scope="module")
def large_area() -> Path:
    """The library that feigns an area of 11,008 bytes, as with AMX. It is built if it is missing."""
    command = f'source "{ROOT}/tools/lib.sh" && require_cargo && cargo build --release --quiet "$@"'
    example = ["--offline", "--package", "postcrash-xstate", "--example", "large_area"]
    subprocess.run(["bash", "-c", command, "bash", *example], check=True, timeout=600)
    return ROOT / "target/release/examples/liblarge_area.so"


@pytest.fixture
def amx(monkeypatch: pytest.MonkeyPatch, large_area: Path) -> None:
    """Processes that start from now on see a large area."""
    monkeypatch.setenv("LD_PRELOAD", str(large_area))


@dataclass(frozen=True, slots=True)
class Bare(Uml):
    """User-mode Linux without the library."""

    def to_wire(self) -> dict[str, Any]:
        return {**Uml.to_wire(self), "preload": None}


def table(folder: Path) -> list[tuple[str, ...]]:
    """Three cells of the table. Their counts differ from run to run."""
    folder.mkdir()
    arguments = ("--target", "ext4-current", "--property", "P2,P3,P5", "--one-disk", "--json", "-")
    ran = postcrash(folder, "characterize", *arguments)
    assert ran.returncode == 1, ran.stderr
    cells = json.loads(ran.stdout)["cells"]
    assert len(cells) == 3
    return [(cell["property"], cell["verdict"], cell["witness"], cell["reason"]) for cell in cells]


@pytest.mark.usefixtures("amx")
def test_without_the_library_init_is_killed(settings: MachineSettings) -> None:
    """If init were not killed, the tests below would mean nothing. `put_fp_registers` fails with EFAULT (14)."""
    with pytest.raises(InfrastructureError) as failed, Machine(MachineSettings(settings.kernel, settings.root, Bare())):
        pass
    assert "fatal_sigsegv" in failed.value.evidence and "Attempted to kill init" in failed.value.evidence


def test_the_table_is_the_same_on_either_host(
    tmp_path: Path, large_area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = table(tmp_path / "here")
    monkeypatch.setenv("LD_PRELOAD", str(large_area))
    assert table(tmp_path / "amx") == here


@pytest.mark.usefixtures("amx")
def test_scripts_of_reports_run() -> None:
    kernel, target = find_kernel(), target_named("ext4-current")
    ran = run_script(kernel, script_root(kernel, target, cache_folder()), target, "echo here; exit 3\n")
    assert (ran.code, ran.printed.strip()) == (3, "here")


def test_a_guest_that_does_not_boot_is_one_line_and_a_file(tmp_path: Path) -> None:
    """The console is not printed on the terminal."""
    kernel = tmp_path / "linux"
    kernel.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo 6.98.0\necho the first line; echo the last line\n')
    kernel.chmod(0o755)
    (tmp_path / "a.ops").write_text("creat a\n")
    ran = postcrash(tmp_path, "check", "a.ops", "--target", "ext4-current", "--kernel", str(kernel))
    *_, said = lines = ran.stderr.splitlines()
    assert ran.returncode == 3
    assert all(line.startswith("postcrash: ") for line in lines)
    assert "the first line" not in ran.stderr
    (place,) = re.findall(r"the guest's console is in (\S+)$", said)
    assert "the last line" in (tmp_path / place).read_text()
