"""The tutorials run as they stand, and print what they say.

Blocks marked `sh` are not run: the set-up made the tests' own environment. In place of a kernel's source there is a
stand-in, whose `make` puts the installed kernel there, or one with the same change in its code (mutant_kernel.py).
With --full the source is there, and the kernel is built.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel

from ..mutants.source import ARCHIVE, require_packages
from ..pages import examples
from .mutant_kernel import RETURN_SUCCESS, mutant

ROOT = Path(__file__).resolve().parents[2]
OF_KERNEL = ROOT / "docs/tutorial-kernel.md"
PAGES = sorted([*(ROOT / "docs").glob("tutorial*.md"), ROOT / "docs/own-file-system.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_it_says(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    programs = [Path(sys.executable).parent]
    if page == OF_KERNEL and request.config.getoption("full"):
        _unpack_source(tmp_path, page.read_text(encoding="utf-8"))
    elif page == OF_KERNEL:
        programs.insert(0, _stand_in(tmp_path))
    else:
        (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "110"}
    for example in examples(page.read_text(encoding="utf-8")):
        example.check(_run(example.command, tmp_path, environment))


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
        check=False,
    ).stdout


def _stand_in(tree: Path) -> Path:
    """What the page needs of a kernel's source, in `tree`, and a folder with its `make`."""
    shutil.copy(find_kernel().path, tree / "stock")
    shutil.copy(mutant(tree, "ext4_fc_commit", RETURN_SUCCESS).path, tree / "changed")
    make = """#!/bin/sh
if grep -q ext4_fc_commit fs/ext4/fsync.c; then cp -f stock linux; else cp -f changed linux; fi
"""
    maintainers = "print 'linux-ext4@vger.kernel.org', \"\\n\";\n"
    files = {"bin/make": make, "scripts/get_maintainer.pl": maintainers, "fs/ext4/fsync.c": _CHANGED_LINE}
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
    return tree / "bin"


_CHANGED_LINE = "\treturn ext4_fc_commit(journal, commit_tid);\n"


def _unpack_source(tree: Path, page: str) -> None:
    """Put the source into `tree`, configured as the page says."""
    require_packages()
    subprocess.run(["tar", "-xf", ARCHIVE, "--strip-components=1", "-C", tree], check=True)
    (block,) = re.findall(r"^```sh\n.*?\n(make ARCH=um defconfig.*?)^```$", page, re.MULTILINE | re.DOTALL)
    subprocess.run(["bash", "-ec", block], cwd=tree, check=True, capture_output=True)
