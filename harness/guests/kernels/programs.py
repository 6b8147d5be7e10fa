"""e2fsck of another suite of Debian, with its own libraries. A target can name this program as its `repair`.

The program is CACHE/programs/SUITE/e2fsck, with its libraries beside it. In guests all these files have the same paths.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.kernels.debian import Suite
from postcrash.harness.guests.kernels.stock import LIBRARIES, run_with

PACKAGE, PROGRAM = "e2fsprogs", "e2fsck"
_NEEDED = re.compile(r"=> (/\S+) \(0x")


def fetch_e2fsck(suite: str, cache: Path) -> Path:
    """The program. It is fetched if it is not there. Raises UsageError, InfrastructureError."""
    folder = (cache / "programs" / suite).resolve()
    if not folder.is_dir():
        with Suite(suite, cache).with_needed(PACKAGE) as root:
            try:
                folder.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as made:
                    _copy(root, Path(made) / suite, folder)
                    (Path(made) / suite).rename(folder)
            except OSError as error:
                raise InfrastructureError(f"{folder}: {error.strerror}") from error
    return folder / PROGRAM


def _copy(root: Path, made: Path, place: Path) -> None:
    """Copy the program and the libraries that its own loader finds to `made`, which will be at `place`."""
    made.mkdir()
    (loader, *_) = root.rglob(f"x86_64-linux-gnu/{LIBRARIES[0]}")
    (program, *_) = root.rglob(f"sbin/{PROGRAM}")
    folders = {str(library.parent) for library in root.rglob("x86_64-linux-gnu/*.so.*")}
    listing = subprocess.run(
        [loader, "--library-path", ":".join(sorted(folders)), "--list", program],
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        raise InfrastructureError(f"{PROGRAM}: its libraries are not known: {listing.stderr.strip()}")
    for file in (program, loader, *map(Path, _NEEDED.findall(listing.stdout))):
        shutil.copy(file, made / file.name)
    run_with(made / PROGRAM, place)
