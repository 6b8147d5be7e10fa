"""Folders that vanish with the command that made them, or with a later one if it was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postcrash.harness.files.scratch import PREFIX, YOUNG_S, ScratchFolder, scratch, sweep

MAKES = """\
import sys
from pathlib import Path
from postcrash.harness.files.scratch import ScratchFolder
made = ScratchFolder(Path(sys.argv[1]))
(made.path / "file").write_text("content")
print(made.path, flush=True)
input()
"""


def aged(folder: Path) -> Path:
    """The folder, as if nothing had been made in it for a while."""
    then = time.time() - 2 * YOUNG_S
    os.utime(folder, (then, then))
    return folder


def test_it_is_removed_at_the_end_and_after_an_error(tmp_path: Path) -> None:
    with scratch(tmp_path) as folder:
        (folder / "file").write_text("content")
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="wrong"), scratch(tmp_path):
        raise ValueError("wrong")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", MAKES, str(tmp_path)]
    with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = aged(Path(process.stdout.readline().strip()))
        sweep(tmp_path)
        assert (theirs / "file").exists(), "its process lives"
        process.kill()
    ours = ScratchFolder(tmp_path)
    aged(ours.path)
    young = tmp_path / f"{PREFIX}young"
    young.mkdir()
    other = aged(tmp_path)
    (tmp_path / "postcrash-other").mkdir()
    aged(tmp_path / "postcrash-other")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "postcrash-other")
    sweep(tmp_path)
    left = {path.name for path in other.iterdir()}
    assert left == {ours.path.name, young.name, "postcrash-other", f"{PREFIX}link"}
    ours.remove()
    ours.remove()
    assert not ours.path.exists()


def test_the_first_folder_in_a_place_removes_what_was_left_there(tmp_path: Path) -> None:
    left = aged_folder(tmp_path)
    with scratch(tmp_path):
        assert not left.exists()


def aged_folder(place: Path) -> Path:
    """A folder without a lock."""
    folder = place / f"{PREFIX}left"
    folder.mkdir()
    (folder / "file").write_text("content")
    return aged(folder)
