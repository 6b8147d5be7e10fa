"""Small text files that the user names: a list of applications, a list of known failures."""

from pathlib import Path

from postcrash.harness.errors import UsageError
from postcrash.model.validation import TooLargeError, read_bounded


def text_of(path: Path, bytes_max: int) -> str:
    """Reads a text file, which is UTF-8, without a byte order mark. Raises UsageError with the file's name."""
    try:
        return read_bounded(path, bytes_max).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8: {error}") from error
    except TooLargeError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
