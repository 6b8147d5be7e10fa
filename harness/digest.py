"""A digest of what a file holds, which is computed again only when the file has changed."""

import hashlib
from functools import lru_cache
from pathlib import Path

from postcrash.harness.errors import InfrastructureError


def content_digest(path: Path) -> str:
    """SHA-256 of a file. The file is read again only when it has changed. Raises InfrastructureError."""
    try:
        now = path.stat()
        return _content_digest(path, now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    except OSError as error:
        raise InfrastructureError(f"{path}: {error.strerror}") from error


@lru_cache(maxsize=1024)
def _content_digest(path: Path, *_: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
