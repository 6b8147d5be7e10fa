"""The files that the style tests check."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = {".git", ".setup", ".venv", ".tox", "target", "build", "dist", "__pycache__"}


def git_files() -> list[Path] | None:
    """The files that git tracks or would track. None if git is missing or this is not a repository."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return None
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    return [ROOT / name for name in output.split("\0") if name]


def is_built(folder: str) -> bool:
    return folder in BUILT or folder.endswith(("_cache", ".egg-info"))


def walked_files() -> list[Path]:
    files = []
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if not is_built(name)]
        files += [Path(folder, name) for name in names]
    return files


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def texts() -> dict[Path, str]:
    """Each text file of the project, by its path relative to the root. Links and binary files are left out."""
    found = git_files()
    files = walked_files() if found is None else found
    result = {}
    for file in sorted(set(files)):
        if file.is_symlink() or not file.is_file():
            continue
        content = file.read_bytes()
        if b"\0" not in content:
            result[file.relative_to(ROOT)] = content.decode("utf-8")
    return result
