"""`postcrash import-xfstests`: what it writes, says and refuses."""

import json
import subprocess
from pathlib import Path

import pytest

from postcrash.targets import load_target

from ..conftest import postcrash

pytestmark = pytest.mark.slow

CONFIG = """\
[ext4_1k]
FSTYP=ext4
MKFS_OPTIONS="-b 1024"
[external]
FSTYP=xfs
USE_EXTERNAL=yes
SCRATCH_LOGDEV=/dev/sdc
[ext4-1k]
FSTYP=ext4
MKFS_OPTIONS="-b 2048"
"""
LEFT_OUT = {
    "external": (7, "SCRATCH_LOGDEV: guests have no second disk for a log or for data"),
    "ext4-1k": (8, "the name xfstests-ext4-1k is taken by another section"),
}


def run(folder: Path, *arguments: str, config: str = CONFIG) -> subprocess.CompletedProcess[str]:
    (folder / "local.config").write_text(config)
    return postcrash(folder, "import-xfstests", "local.config", *arguments)


def test_targets_are_written_and_the_rest_is_said_line_by_line(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    said = [f"left out: local.config:{line}: [{name}] {reason}" for name, (line, reason) in LEFT_OUT.items()]
    assert ran.stdout.splitlines() == ["xfstests-ext4-1k.toml: like ext4-current", *said]
    assert [path.name for path in tmp_path.glob("*.toml")] == ["xfstests-ext4-1k.toml"]
    assert "1024" in load_target(tmp_path / "xfstests-ext4-1k.toml").mkfs


def test_a_section_is_chosen_and_written_elsewhere(tmp_path: Path) -> None:
    ran = run(tmp_path, "--section", "ext4-1k", "-o", "new/folder", "--json", "-")
    assert ran.returncode == 0, ran.stderr
    place = "new/folder/xfstests-ext4-1k.toml"
    told = {"section": "ext4-1k", "target": "xfstests-ext4-1k", "file": place, "like": "ext4-current"}
    assert json.loads(ran.stdout) == {"targets": [told], "left_out": []}
    assert "2048" in load_target(tmp_path / place).mkfs


@pytest.mark.parametrize(
    ("arguments", "config", "code", "said"),
    [
        (
            ("--section", "ext4_1"),
            CONFIG,
            4,
            "local.config: unknown section 'ext4_1', did you mean 'ext4_1k'? (known: ",
        ),
        (("--section", "external"), CONFIG, 5, "local.config: no section of it can be a target"),
        ((), "MODULAR=0\n", 5, "local.config: no section of it can be a target"),
        ((), "[a\x1b]\n", 4, "local.config:1: expected a section's name of letters"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], config: str, code: int, said: str
) -> None:
    ran = run(tmp_path, *arguments, config=config)
    assert ran.returncode == code
    (line,) = ran.stderr.splitlines()
    assert said in line and "\x1b" not in line
    assert not list(tmp_path.glob("*.toml"))
