"""What a wheel and a source archive hold, as pyproject.toml and MANIFEST.in say it, and that there is one version."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import postcrash

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())
NO_DATA = {".py", ".pyc", ".rs", ".so"}


def data_files() -> set[Path]:
    """Files in the folders of the code that are no code."""
    folders = [path for path in (ROOT / "postcrash").iterdir() if path.is_symlink()]
    files = (file for folder in folders for file in folder.resolve().rglob("*") if file.is_file())
    return {file for file in files if file.suffix not in NO_DATA and file.name != "Cargo.toml"}


def packaged_files() -> set[Path]:
    """The files that package-data names."""
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]
    folders = {package: ROOT / package.replace(".", "/") for package in patterns}
    return {
        file.resolve()
        for package, folder in folders.items()
        for each in patterns[package]
        for file in folder.glob(each)
    }


def test_every_data_file_is_packaged() -> None:
    assert len(data_files()) > 50
    assert data_files() - packaged_files() == set()


def test_the_markers_of_types_are_packaged() -> None:
    assert {ROOT / "postcrash/py.typed", ROOT / "postcrash/_core.pyi"} <= packaged_files()


def test_the_source_archive_has_every_crate() -> None:
    grafts = {line.split()[1] for line in (ROOT / "MANIFEST.in").read_text().splitlines() if line.startswith("graft")}
    assert grafts == set(CARGO["workspace"]["members"])


def test_one_command_sets_the_version(tmp_path: Path) -> None:
    names = ["tools/version", "postcrash/__init__.py", "Cargo.toml", "Cargo.lock", "CITATION.cff", "CHANGELOG.md"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run([tmp_path / "tools/version", "7.8.9"], check=True)
    changed = {name: (tmp_path / name).read_text().count("7.8.9") for name in names}
    own = len(CARGO["workspace"]["members"])
    assert changed == dict.fromkeys(names, 1) | {"tools/version": 0, "Cargo.lock": own}
    refused = subprocess.run([tmp_path / "tools/version", "7.8"], capture_output=True, check=False)
    assert refused.returncode == 1


def test_there_is_one_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert CARGO["workspace"]["package"]["version"] == postcrash.__version__
    assert f"\nversion: {postcrash.__version__}\n" in citation
