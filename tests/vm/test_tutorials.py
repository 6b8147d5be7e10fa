"""The tutorials run as they stand, and print what they say.

Blocks marked `sh` are not run: the set-up made the tests' own environment.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..pages import examples

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").glob("tutorial*.md"), ROOT / "docs/own-file-system.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "110"}
    for example in examples(page.read_text(encoding="utf-8")):
        done = subprocess.run(
            ["bash", "-c", example.command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        example.check(done.stdout)
