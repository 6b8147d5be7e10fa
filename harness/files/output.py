"""Writes results: `-` is standard output, files are written atomically, devices and pipes are not replaced.

Also prints messages to the user, and formats counts.
"""

import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console

from postcrash.harness.errors import HarnessError, InfrastructureError
from postcrash.model.text import visible
from postcrash.store.consoles import Casualty, keep_console

QUIET = "postcrash.quiet"
"""The key in click's `Context.meta` that says whether --quiet was given."""
_DIGITS_MAX = 40


def is_quiet() -> bool:
    """Whether the running command has --quiet. Errors are printed after the command has ended."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def notes() -> Console:
    """Returns a console on standard error, for progress and notes. With --quiet it prints nothing."""
    return Console(stderr=True, quiet=is_quiet())


def say(text: str) -> None:
    """Prints a note to standard error. Names in it may come from strangers."""
    notes().print(f"postcrash: {visible(text)}", markup=False, highlight=False, soft_wrap=True, emoji=False)


def kept_evidence(store: Path, error: HarnessError) -> str:
    """Writes the guest's console, the evidence of an error, to the store. Returns a note with the file's name."""
    try:
        return f"the guest's console is in {keep_console(store, Casualty(str(error), error.evidence))}"
    except OSError as failed:
        return f"the guest's console could not be kept: {failed}"


def count_text(count: int) -> str:
    """Formats a number of crash states: exact up to 40 digits, as a power of ten beyond."""
    return str(count) if count < 10**_DIGITS_MAX else f"about 10^{math.log10(count):.0f}"


def command_line() -> str:
    """Returns the running command as its user would type it."""
    return shlex.join(["postcrash", *sys.argv[1:]])


def write_json(place: str | None, obj: object) -> None:
    """Writes `obj` as JSON to the file `place`. `-` is standard output; None writes nothing."""
    if place is not None:
        write_text(place, json.dumps(obj, indent=2, ensure_ascii=False) + "\n")


def write_text(place: str, text: str) -> None:
    """Writes `text` to the file `place`, or to standard output for `-`. Raises InfrastructureError."""
    if place == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        with replacing(Path(place)) as file:
            file.write(text.encode())
    except OSError as error:
        raise InfrastructureError(f"cannot write {place}: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that replaces `path` when it is complete. Raises OSError. After an error `path` is unchanged.

    Devices and pipes are written to, not replaced.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
