"""Finds the line of a key in a TOML file, which tomllib does not report."""

import re
import tomllib
from collections.abc import Sequence

_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_ASSIGNED = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_HEADER = re.compile(r"\s*(\[{1,2}[^\[\]\n]+\]{1,2})\s*(?:#.*)?")


def line_of(text: str, place: Sequence[str]) -> int:
    """The line, counted from 1, in which the key `place` is set, or else the nearest key or table around it.

    A line within a text of several lines that looks like a key is taken for one.
    """
    best, line = 0, 1
    table: tuple[str, ...] = ()
    for number, content in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(content):
            key = table = _key(header[1])
        elif assigned := _ASSIGNED.match(content):
            key = (*table, *_key(f"{assigned[1]} = 0"))
        else:
            continue
        if len(key) > best and tuple(place[: len(key)]) == key:
            best, line = len(key), number
    return line


def _key(text: str) -> tuple[str, ...]:
    """The key that one line of TOML sets; empty if it is none."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ()
    key: list[str] = []
    value: object = found
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        key.append(name)
        if isinstance(value, list):  # a table of an array
            value = value[0] if value else None
    return tuple(key)
