"""Where postcrash keeps things.

The cache (base images, guest roots) can be removed at any time and is made again. A store holds results: by default
`.postcrash` in the current folder, so that `repro` and `explain` find what `check` found.
"""

import os
from pathlib import Path

STORE_DEFAULT = Path(".postcrash")


def cache_folder() -> Path:
    """`$POSTCRASH_CACHE`, else `postcrash` in the user's cache folder (XDG Base Directory Specification)."""
    if override := os.environ.get("POSTCRASH_CACHE"):
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postcrash"
