"""Copies of the user's own kernel files, in the cache.

The user may build a kernel again while guests with it are started. Results are kept under the digest of the kernel that
was there at first, so every guest must boot that kernel. A hard link would not do: linkers may write into the old file.
"""

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.digest import content_digest

_CONFIG = "config"
"""The configuration may stand beside a kernel (`config_of`)."""
UNUSED_SECONDS_MAX = 30 * 24 * 3600
"""A copy that no command has asked for in this time is removed when another copy is made."""


def kernel_copy(kernel: Path, cache: Path) -> Path:
    """The copy of the kernel in the file `kernel`, with the configuration that stands beside it.

    The same content has the same copy. Raises InfrastructureError.
    """
    folder = cache / "kernel-files"
    try:
        copy = folder / _digest(kernel)
        if not copy.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            remove_unused(folder)
            copy = _made(kernel, folder)
        os.utime(copy)
    except OSError as error:
        raise InfrastructureError(f"{kernel} cannot be copied to {folder}: {error.strerror or error}") from error
    return copy / "kernel"


def copies(cache: Path) -> list[Path]:
    """The copies that are in the cache. Raises InfrastructureError."""
    folder = cache / "kernel-files"
    try:
        return sorted(folder.glob("[!.]*/kernel"))
    except OSError as error:
        raise InfrastructureError(f"{folder}: {error.strerror or error}") from error


def mark_used(copy: Path) -> None:
    """Keep a copy from being removed as unused. Raises InfrastructureError."""
    try:
        os.utime(copy.parent)
    except OSError as error:
        raise InfrastructureError(f"{copy}: {error.strerror or error}") from error


def _made(kernel: Path, folder: Path) -> Path:
    """The copy is named by its own content, because the file may be written while it is copied."""
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as made:
        new = Path(made) / "copy"
        new.mkdir()
        shutil.copy(kernel, new / "kernel")
        if kernel.with_name(_CONFIG).is_file():
            shutil.copy(kernel.with_name(_CONFIG), new / _CONFIG)
        copy = folder / _digest(new / "kernel")
        try:
            new.rename(copy)
        except OSError:
            if not copy.is_dir():  # another process may have made the same copy meanwhile
                raise
    return copy


def _digest(kernel: Path) -> str:
    files = [kernel, *filter(Path.is_file, [kernel.with_name(_CONFIG)])]
    return hashlib.sha256("".join(map(content_digest, files)).encode()).hexdigest()[:16]


def remove_unused(folder: Path) -> None:
    """Remove the files and folders in `folder` that have not been touched for `UNUSED_SECONDS_MAX`. OSError."""
    for entry in folder.iterdir():
        with suppress(FileNotFoundError):  # another process may remove it too
            if time.time() - entry.stat().st_mtime > UNUSED_SECONDS_MAX:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
