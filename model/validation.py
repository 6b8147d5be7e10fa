"""Files that users write, and names that they give: how they are read, and the words for what is wrong."""

import difflib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

_SHOWN_MAX = 80
_TOML_BYTES_MAX = 64 * 1024


class TomlError(ValueError):
    """A file is not TOML, or cannot be read; the text shows the file."""


def read_toml(path: Path) -> dict[str, Any]:
    """What the small TOML file `path` says. Raises TomlError."""
    try:
        if path.stat().st_size > _TOML_BYTES_MAX:
            raise TomlError(f"{path}: more than {_TOML_BYTES_MAX} bytes")
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise TomlError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TomlError(f"{path}: not TOML: {error}") from None


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The words for a name that is not known, with the nearest one that is, and all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {name!r}{hint} (known: {', '.join(names)})"


def first_objection(error: ValidationError) -> str:
    """The first thing that is wrong: its place, the reason, and what was found there (cut after 80 characters)."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"])) or "its text"
    place = _cut(place if place.isprintable() else repr(place))
    if first["type"] in {"missing", "json_invalid"}:
        return f"{place}: {first['msg']}"
    return f"{place}: {first['msg']}, found {_cut(repr(first['input']))}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
