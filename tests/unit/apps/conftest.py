"""Folders, as a crash leaves them, made by hand, and programs that run under the tracer."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.apps import Folder
from postcrash.apps.protocol import Protocol, read_trace
from postcrash.harness.guests.binaries import find_binary

Traced = Callable[..., Protocol]


@pytest.fixture
def folder() -> Callable[..., Folder]:
    """Makes a folder with files of these names and contents."""

    def make(**files: bytes) -> Folder:
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return Folder(made.getvalue())

    return make


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    """What a Python program does to an empty folder, or to one that `before` has filled."""

    def run(program: str, before: str = "", always: bool = False) -> Protocol:
        folder = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (tmp_path / "program.py").write_text(PRELUDE + program)
        subprocess.run([sys.executable, "-S", "-c", PRELUDE + before], cwd=folder, check=True)
        environment = {**os.environ, **({"POSTCRASH_LOOK_ALWAYS": "1"} if always else {})}
        command = [str(find_binary("postcrash-calls")), str(folder), str(tmp_path / "trace")]
        command += [sys.executable, "-S", str(tmp_path / "program.py")]
        subprocess.run(command, cwd=folder, check=True, env=environment, timeout=60)
        return read_trace(tmp_path / "trace")

    return run


PRELUDE = """
import os, mmap
def put(name, content, offset=0, *, flags=os.O_CREAT | os.O_WRONLY):
    file = os.open(name, flags, 0o644)
    os.pwrite(file, content.encode(), offset)
    return file
def sync(name):
    os.fsync(os.open(name, os.O_RDONLY))
"""
