"""Digests of files, which are computed again only when a file has changed."""

from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.known_files import known_files
from postcrash.targets import content_digest_by


def content_digest(path: Path) -> str:
    """Returns the SHA-256 of a file. It is read again only when it has changed. Raises InfrastructureError."""
    try:
        return content_digest_by(path, known_files().ask)
    except OSError as error:
        raise InfrastructureError(f"{path}: {error.strerror}") from error
