"""find_binary: which folder wins, and what an error says."""

from pathlib import Path

import pytest

import postcrash
from postcrash.harness.guests.binaries import BinaryNotFoundError, find_binary


def put_program(folder: Path, name: str, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.touch()
    program.chmod(mode)
    return program


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout that find_binary takes for the one of its own."""
    monkeypatch.delenv("POSTCRASH_BIN_DIR", raising=False)
    monkeypatch.setattr(postcrash, "__file__", str(tmp_path / "postcrash/__init__.py"))
    return tmp_path


def test_an_installed_program_comes_before_a_built_one(checkout: Path) -> None:
    built = put_program(checkout / "target/release", "crashdisk")
    assert find_binary("crashdisk") == built
    installed = put_program(checkout / "postcrash/_bin", "crashdisk")
    assert find_binary("crashdisk") == installed


def test_a_dynamically_linked_agent_is_not_taken(checkout: Path) -> None:
    put_program(checkout / "target/release", "postcrash-agent")
    with pytest.raises(BinaryNotFoundError, match="run `make setup`"):
        find_binary("postcrash-agent")
    static = put_program(checkout / "target/x86_64-unknown-linux-gnu/release", "postcrash-agent")
    assert find_binary("postcrash-agent") == static


def test_the_override_is_the_only_folder_looked_at(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_program(checkout / "target/release", "crashdisk")
    monkeypatch.setenv("POSTCRASH_BIN_DIR", str(checkout / "mine"))
    with pytest.raises(BinaryNotFoundError, match="unset POSTCRASH_BIN_DIR"):
        find_binary("crashdisk")
    mine = put_program(checkout / "mine", "crashdisk")
    assert find_binary("crashdisk") == mine


def test_a_file_that_cannot_be_run_is_not_taken(checkout: Path) -> None:
    put_program(checkout / "target/release", "crashdisk", mode=0o644)
    with pytest.raises(BinaryNotFoundError):
        find_binary("crashdisk")


def test_an_unknown_name_is_an_error(checkout: Path) -> None:
    with pytest.raises(ValueError, match="'crashdsk'"):
        find_binary("crashdsk")
