"""The command line as these tests run it: in an interpreter of its own, with lines as wide as it finds them."""

import subprocess
from pathlib import Path

from ....vm.command import COMMAND, Ended


def postcrash(folder: Path, *arguments: str | Path) -> Ended:
    """Run the command line in `folder`, where the store will be."""
    return subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
