"""The libraries of a program: ldd is asked again only when the answer can be another one."""

import shutil
import sys
from pathlib import Path

import pytest

from postcrash.harness.files.known_files import KnownFiles
from postcrash.targets import libraries_of


def test_ldd_is_asked_again_only_when_it_must(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, library, asked = tmp_path / "program", tmp_path / "library", 0
    known = KnownFiles(tmp_path / "known")

    def ldd(_program: str) -> list[str]:
        nonlocal asked
        asked += 1
        return [str(library)]

    monkeypatch.setattr(sys.modules[libraries_of.__module__], "_ldd", ldd)
    for path in (program, library):
        path.write_text("one")
    assert [libraries_of(str(program), known.ask) for _ in range(2)] == [[str(library)]] * 2
    assert asked == 1
    program.write_text("another")
    libraries_of(str(program), known.ask)
    assert asked == 2
    library.unlink()
    libraries_of(str(program), known.ask)
    assert asked == 3


def test_a_library_that_now_comes_before_another_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library in a folder of LD_LIBRARY_PATH takes the place of the system's, and no other file changes."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    known = KnownFiles(tmp_path / "known")
    (system,) = (file for file in libraries_of("/bin/sh", known.ask) if file.endswith("/libc.so.6"))
    shutil.copy(system, tmp_path / "libc.so.6")
    assert str(tmp_path / "libc.so.6") in libraries_of("/bin/sh", known.ask)
