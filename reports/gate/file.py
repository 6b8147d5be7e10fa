"""Results of gates in files. A file may come from anywhere."""

from pathlib import Path

from pydantic import ValidationError

from postcrash.model.text import one_line
from postcrash.model.validation import TooLargeError, first_objection, read_bounded
from postcrash.store.gate_run import GateRun

BYTES_MAX = 256 * 1024 * 1024
"""The largest file that is read."""


class GateFileError(ValueError):
    """A file holds no result of a gate. The text, one line, has the file, the place in it, and what was found there."""


def load(path: Path | str) -> GateRun:
    """The result in the file `path`. Raises GateFileError."""
    try:
        return GateRun.model_validate_json(read_bounded(Path(path), BYTES_MAX))
    except TooLargeError as error:
        raise GateFileError(one_line(str(error))) from None
    except OSError as error:
        raise GateFileError(f"{one_line(str(path))}: {error.strerror}") from None
    except ValidationError as error:
        raise GateFileError(f"{one_line(str(path))}: {first_objection(error)}") from None
