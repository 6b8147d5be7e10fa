"""The folders that postcrash uses.

The cache (base images, guest roots) can be removed at any time. A store holds results; by default it is `.postcrash`
in the current folder, so that `repro` and `explain` find the findings of `check`.
"""

import os
from pathlib import Path

STORE_DEFAULT = Path(".postcrash")
GATE_FILE = "postcrash.toml"
"""The file of a gate, in the folder of what it guards."""


def quick_folder() -> Path | None:
    """Returns a folder in memory for temporary files, or None if there is none."""
    place = Path("/dev/shm")
    return place if place.is_dir() and os.access(place, os.W_OK) else None


def cache_folder() -> Path:
    """`$POSTCRASH_CACHE`, or `postcrash` in the user's cache folder (XDG Base Directory Specification)."""
    if override := os.environ.get("POSTCRASH_CACHE"):
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postcrash"
