"""Where postcrash keeps things.

The cache (base images, guest roots) can be removed at any time and is made again. A store holds results: by default
`.postcrash` in the current folder, so that `repro` and `explain` find what `check` found.
"""

import os
from pathlib import Path

STORE_DEFAULT = Path(".postcrash")


def quick_folder() -> Path | None:
    """Where files that are soon removed are best made: in memory. None where there is no such place."""
    place = Path("/dev/shm")
    return place if place.is_dir() and os.access(place, os.W_OK) else None


def cache_folder() -> Path:
    """`$POSTCRASH_CACHE`, else `postcrash` in the user's cache folder (XDG Base Directory Specification)."""
    if override := os.environ.get("POSTCRASH_CACHE"):
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postcrash"
