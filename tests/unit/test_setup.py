"""tools/setup: its message and its exit code if it cannot install what is missing."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["bash", "cut", "dirname", "env", "flock", "mkdir", "sed", "sort"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a folder of commands that has no apt-get."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copy(ROOT / "Cargo.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for command in COMMANDS:
        found = shutil.which(command)
        assert found is not None, command
        (tmp_path / "bin" / command).symlink_to(found)
    return tmp_path


def run_packages_step(checkout: Path, packages: str) -> subprocess.CompletedProcess[str]:
    (checkout / "tools/packages.txt").write_text(packages)
    return subprocess.run(
        [checkout / "tools/setup", "packages"],
        env={"PATH": str(checkout / "bin"), "HOME": str(checkout)},
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )


def test_nothing_to_say_when_all_is_there(checkout: Path) -> None:
    result = run_packages_step(checkout, "# a comment\n\nbash  bash  a shell\n")
    assert (result.returncode, result.stderr) == (0, "")


def test_what_is_missing_is_listed(checkout: Path) -> None:
    result = run_packages_step(checkout, "bash  bash  a shell\none  no-such-command  x\nold|new  another-one  y\n")
    assert result.returncode == 3
    assert "missing: one old|new (Debian's package names), and there is no apt-get" in result.stderr


def test_a_wrong_step_shows_the_usage(checkout: Path) -> None:
    result = subprocess.run([checkout / "tools/setup"], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert result.returncode == 4
    assert "tools/setup all" in result.stderr
