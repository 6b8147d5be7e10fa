"""The wheel and the source archive: each is installed into an empty environment, and runs outside of the checkout."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import postcrash
from postcrash.harness.cli.manual import manual_pages

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {"crashdisk", "postcrash-calls", "postcrash-agent", "libpostcrash_xstate.so", "xsync"}
pytestmark = pytest.mark.full


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`, without what the tests' own environment says of Python and postcrash."""
    left_out = ("PYTHON", "POSTCRASH_BIN", "POSTCRASH_SKIP", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800, check=False
    )


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that tools/dist has filled."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(ROOT, ROOT / "tools/dist", folder)
    assert done.returncode == 0, done.stderr
    return folder


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_the_wheel_says_what_it_needs_and_holds_every_program(dist: Path) -> None:
    wheel = only(dist, "*.whl")
    assert wheel.name.startswith(f"postcrash-{postcrash.__version__}-cp311-abi3-manylinux_2_")
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            Path(info.filename).name: info
            for info in archive.infolist()
            if "/_bin/" in info.filename and not info.is_dir()
        }
    assert set(packed) == PROGRAMS
    assert all(info.external_attr >> 16 & 0o111 for info in packed.values())


def test_the_source_archive_has_nothing_that_was_built(dist: Path) -> None:
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        names = archive.getnames()
    assert any(name.endswith("/tools/cargo-programs") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or "/target/" in name or "/_bin" in name]


@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_it_runs_in_an_empty_environment(dist: Path, pattern: str, tmp_path: Path) -> None:
    assert run(tmp_path, sys.executable, "-m", "venv", "empty").returncode == 0
    programs = tmp_path / "empty/bin"
    installed = run(tmp_path, programs / "python", "-m", "pip", "install", only(dist, pattern))
    assert installed.returncode == 0, installed.stdout + installed.stderr
    found = run(tmp_path, programs / "python", "-c", "import postcrash; print(postcrash.__file__)")
    assert Path(found.stdout.strip()).is_relative_to(tmp_path)
    version = run(tmp_path, programs / "postcrash", "--version")
    assert version.stdout == f"postcrash, version {postcrash.__version__}\n"
    pages = {page.name: page.read_text("ascii") for page in (tmp_path / "empty/share/man/man1").iterdir()}
    assert pages == manual_pages()
    doctor = run(tmp_path, programs / "postcrash", "doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    cell = [
        "characterize",
        "--target",
        "ext4-current",
        "--property",
        "P4",
        "--json",
        "table.json",
        "--html",
        "table.html",
    ]
    table = run(tmp_path, programs / "postcrash", *cell)
    assert table.returncode == 0, table.stdout + table.stderr
    (result,) = json.loads((tmp_path / "table.json").read_text())["cells"]
    assert (result["target"], result["verdict"]) == ("ext4-current", "holds")
    assert "<!DOCTYPE html>" in (tmp_path / "table.html").read_text()
