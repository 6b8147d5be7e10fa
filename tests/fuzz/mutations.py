"""Changes of sound inputs: what damages a file, and what somebody writes who means harm."""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

BYTES_MAX = 64 * 1024
"""The longest input."""
Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]

_NUMBERS = (0, 1, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_DECIMAL = re.compile(rb"-?[0-9]+")
_WORDS = (b"", b"0", b"-1", b"1" * 20, b"9" * 5000, b"1e400", b"nan", b"\0", b"\xff", b"../", b"a" * 300, b"\n", b"=")
_VALUES: tuple[Any, ...] = (None, True, -1, 0, 2**31, 2**63, 10**400, 1.5, "", "\0", "\ud800", "../x", [], {}, [[]])
_DEEP = (b"[", b"{", b'{"a":', b"(", b"a.", b'"')


def mutated(content: bytes, choice: random.Random, seeds: Sequence[bytes]) -> bytes:
    """`content` with one to four changes, at most `BYTES_MAX` long. `seeds` are inputs to take parts from."""
    for _ in range(choice.randint(1, 4)):
        content = choice.choice(_MUTATIONS)(content, choice, seeds)[:BYTES_MAX]
    return content


def _flip(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    at = choice.randrange(len(content) or 1)
    return content[:at] + bytes(byte ^ 1 << choice.randrange(8) for byte in content[at : at + 1]) + content[at + 1 :]


def _cut(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    return content[: choice.randint(0, len(content))]


def _leave_out(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    start, end = _range(content, choice)
    return content[:start] + content[end:]


def _repeat(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    start, end = _range(content, choice)
    return content[:end] + content[start:end] * choice.choice((1, 2, 1000)) + content[end:]


def _splice(content: bytes, choice: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = choice.choice(seeds)
    return content[: choice.randint(0, len(content))] + other[choice.randint(0, len(other)) :]


def _set_number(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Set a binary field of one to eight bytes to an extreme."""
    size = choice.choice((1, 2, 4, 8))
    at = choice.randrange(max(len(content) - size, 1))
    if choice.random() < 0.8:
        at -= at % size
    number: int = choice.choice(_NUMBERS) % 256**size
    return content[:at] + number.to_bytes(size, choice.choice(("little", "big"))) + content[at + size :]


def _set_decimal(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Set a number that is written in digits to an extreme."""
    found = list(_DECIMAL.finditer(content))
    if not found:
        return content
    match = choice.choice(found)
    return content[: match.start()] + str(choice.choice(_NUMBERS)).encode() + content[match.end() :]


def _set_word(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    start, end = _word(content, choice)
    return content[:start] + choice.choice(_WORDS) + content[end:]


def _nest(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    start, end = _word(content, choice)
    return content[:start] + choice.choice(_DEEP) * choice.choice((100, 1200, 12000)) + content[end:]


def _set_value(content: bytes, choice: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Replace a value of JSON, or of a line of JSON, by another one. Other content stays as it is."""
    lines = content.split(b"\n")
    at = choice.randrange(len(lines))
    start, end = (0, len(lines)) if choice.random() < 0.5 else (at, at + 1)
    try:
        value = json.loads(b"\n".join(lines[start:end]))
    except (ValueError, RecursionError):
        return content
    changed = json.dumps(_changed(value, choice)).encode()
    return b"\n".join([*lines[:start], changed, *lines[end:]])


def _changed(value: Any, choice: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or choice.random() < 0.1:
        return choice.choice(_VALUES)
    key = choice.choice(list(value) if isinstance(value, dict) else range(len(value)))
    what = choice.random()
    if what < 0.8:
        value[key] = _changed(value[key], choice)
    elif what < 0.9:
        del value[key]
    elif isinstance(value, dict):
        value[choice.choice(("", "x", "\ud800", "\x1b[2J"))] = value[key]
    else:
        value.insert(key, value[key])
    return value


def _range(content: bytes, choice: random.Random) -> tuple[int, int]:
    start = choice.randint(0, len(content))
    return start, min(len(content), start + choice.choice((1, 4, 16, 64, 512, 4096)))


def _word(content: bytes, choice: random.Random) -> tuple[int, int]:
    """Where a run of letters and digits stands, or an empty place."""
    at = choice.randint(0, len(content))
    match = re.compile(rb"\w{1,64}").search(content, at, at + 256)
    return match.span() if match and choice.random() < 0.7 else (at, at)


_MUTATIONS: tuple[Mutation, ...] = (
    *(_flip, _cut, _leave_out, _repeat, _splice),
    *(_set_number, _set_decimal, _set_word, _nest, _set_value, _set_value),
)
