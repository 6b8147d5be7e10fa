"""A module that is not part of the kernel is added as docs/targets.md says.

The commands of the page are run as they stand, but for the kernel's version and name.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.kernels.kernel import Kernel

ROOT = Path(__file__).resolve().parents[2]
NAME = "apfs-of-a-test"


@pytest.mark.full
def test_a_module_from_elsewhere_is_added_and_judged(image: Kernel, tmp_path: Path) -> None:
    section = (ROOT / "docs/targets.md").read_text().split("## Modules from elsewhere")[1]
    target = re.search(r"```toml\n(.*?)```", section, re.DOTALL)
    assert target is not None and image.modules is not None
    (tmp_path / "apfs").mkdir()
    (tmp_path / "apfs/apfs.toml").write_text(target[1])
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    recipe = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    recipe = re.sub(r"V=\S+; K=\S+", f"V={image.version}; K={image.modules.parent}", recipe)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    try:
        done = subprocess.run(
            ["bash", "-ec", recipe.replace("6.1-apfs", NAME).replace("--budget 1000", "--budget 10")],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
    finally:
        shutil.rmtree(cache_folder() / "kernels" / NAME, ignore_errors=True)
    assert re.search(r"^(VIOLATED|UNDECIDED) on apfs, ", done.stdout, re.MULTILINE), done.stderr[-2000:]
