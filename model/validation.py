"""Reads files that users write, and words the messages about mistakes in them."""

import difflib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

_SHOWN_MAX = 80
_MESSAGE_MAX = 500
_TOML_BYTES_MAX = 64 * 1024
_DOTS_MAX = 500
"""tomllib takes time with the square of the parts of a key, which has dots between them."""
_MISSING = "missing"
"""What pydantic calls it that a field is missing."""
_AT_END = "(at end of document)"
"""What tomllib says in place of a line if the file ends too soon."""


class TooLargeError(ValueError):
    """A file is larger than what is read of its kind; the text shows the file."""


def read_bounded(path: Path, bytes_max: int) -> bytes:
    """The content of the file `path`, of which no more is read than may be there. Raises OSError and TooLargeError."""
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise TooLargeError(f"{path}: more than {bytes_max} bytes")
    return content


class TomlError(ValueError):
    """A file is not TOML, or cannot be read; the text shows the file."""


def read_toml(path: Path) -> dict[str, Any]:
    """What the small TOML file `path` says. Raises TomlError."""
    text = ""
    try:
        text = read_bounded(path, _TOML_BYTES_MAX).decode()
        for number, line in enumerate(text.split("\n"), start=1):
            if line.count(".") > _DOTS_MAX:
                raise TomlError(f"{path}:{number}: more than {_DOTS_MAX} dots in a line")
        return tomllib.loads(text)
    except OSError as error:
        raise TomlError(f"{path}: {error.strerror}") from None
    except TooLargeError as error:
        raise TomlError(str(error)) from None
    except TomlError:
        raise
    except (ValueError, RecursionError) as error:  # also numbers and tables that Python cannot take in
        last = text.rstrip().count("\n") + 1
        reason = _cut(str(error), _MESSAGE_MAX).replace(_AT_END, f"(at the end, line {last})")
        raise TomlError(f"{path}: not TOML: {reason}") from None


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The message about an unknown name, with the nearest known one in upper or lower case, and all of them."""
    names = list(known)
    by_case = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(name[:_SHOWN_MAX].casefold(), by_case, n=1)
    hint = f", did you mean {by_case[near[0]]!r}?" if near else ""
    return f"unknown {what} {shown(name)}{hint} (known: {', '.join(names)})"


def first_objection(error: ValidationError) -> str:
    """The first thing that is wrong: its place, the reason, and what was found there (cut after 80 characters).

    If a field is missing, all that are missing beside it are named.
    """
    errors = error.errors(include_url=False)
    first = errors[0]
    place = place_of(first["loc"]) or "its text"
    if first["type"] == _MISSING:
        beside = [each["loc"] for each in errors if each["type"] == _MISSING and each["loc"][:-1] == first["loc"][:-1]]
        place = _cut(", ".join(map(place_of, beside)), _MESSAGE_MAX)
    if first["type"] in {_MISSING, "json_invalid"}:
        return f"{place}: {_cut(first['msg'], _MESSAGE_MAX)}"
    return f"{place}: {_cut(first['msg'], _MESSAGE_MAX)}, found {shown(first['input'])}"


def shown(value: object) -> str:
    """`value` for a message, cut after 80 characters."""
    try:
        return _cut(repr(value))
    except RecursionError:
        return f"{type(value).__name__} with too many levels"


def place_of(steps: Iterable[int | str]) -> str:
    """Where in a value something stands, for a message: names that come from elsewhere are cut and escaped."""
    place = ".".join(map(str, steps))
    return _cut(place if place.isprintable() else repr(place))


def _cut(text: str, most: int = _SHOWN_MAX) -> str:
    return text if len(text) <= most else text[:most] + "…"
