"""Takes apart what strace prints between the parentheses of a call, in time proportional to its length."""

import os
import re
from dataclasses import dataclass

_SPECIAL = re.compile(r'["<,()\[\]{}]')
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f", b"v": b"\v", b"a": b"\a", b"b": b"\b", b"e": b"\x1b"}
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]{1,16}|[0-9]{1,20})")
_DELETED = "(deleted)"


class ArgumentsError(ValueError):
    """The text is not as strace prints it. The message says what was expected."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A file descriptor: its number (None: the working directory), and the path that `-y` printed ("" if none)."""

    number: int | None
    path: str


def split(text: str, at: int) -> tuple[list[str], int]:
    """The arguments from `at`, which is behind an opening bracket, and the position behind the closing bracket."""
    found: list[str] = []
    start, depth, decorations = at, 0, True
    while special := _SPECIAL.search(text, at):
        at = special.end()
        character = special[0]
        if character == '"':
            at = _string_end(text, at)
        elif character == "<":
            end = _decoration_end(text, at) if decorations else 0
            decorations, at = end > 0, end or at
        elif character in "([{":
            depth += 1
        elif character == ",":
            if depth == 0:
                found.append(text[start : at - 1].strip())
                start = at
        elif depth:
            depth -= 1
        else:
            last = text[start : at - 1].strip()
            return ([*found, last] if found or last else []), at
    raise ArgumentsError("a closing bracket")


def _string_end(text: str, at: int) -> int:
    while (quote := text.find('"', at)) >= 0:
        before = quote
        while before > at and text[before - 1] == "\\":
            before -= 1
        if (quote - before) % 2 == 0:
            return quote + 1
        at = quote + 1
    raise ArgumentsError("a closing quote")


def _decoration_end(text: str, at: int) -> int:
    """The position behind the `>` that ends a descriptor's path, or 0 if there is none. Socket addresses have `->`."""
    while (end := text.find(">", at)) >= 0:
        if text[end - 1] != "-":
            return end + 1
        at = end + 1
    return 0


def string(argument: str) -> tuple[bytes, bool]:
    """The bytes of a quoted string, and whether strace printed all of them."""
    complete = not argument.endswith("...")
    quoted = argument if complete else argument[:-3]
    if len(quoted) < 2 or quoted[0] != '"' or quoted[-1] != '"':
        raise ArgumentsError("a string")
    return unescaped(quoted[1:-1]), complete


def unescaped(text: str) -> bytes:
    """The bytes that an escaped text stands for."""
    if text.count("\\x") * 4 == len(text):
        try:
            return bytes.fromhex(text.replace("\\x", ""))
        except ValueError:
            raise ArgumentsError("two hexadecimal digits after each \\x") from None
    return _ESCAPE.sub(_byte, text.encode("latin-1"))


def _byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes([int(code[1:], 16)])
    if code[:1] in b"01234567":
        return bytes([int(code, 8) & 255])
    return _LETTERS.get(code, code)


def path(argument: str) -> str:
    """A path. Bytes that are not UTF-8 become Python's surrogates."""
    content, complete = string(argument)
    if not complete:
        raise ArgumentsError("a whole path; run strace with a larger -s")
    return os.fsdecode(content)


def descriptor(argument: str) -> Descriptor | None:
    """The descriptor that an argument stands for, or None if it stands for none."""
    word, _, decoration = argument.partition("<")
    if word == "AT_FDCWD":
        number = None
    elif word.isascii() and word.isdigit() and len(word) < 10:
        number = int(word)
    else:
        return None
    shown = decoration.removesuffix(_DELETED).removesuffix(">")
    return Descriptor(number, os.fsdecode(unescaped(shown)) if shown else "")


def number(argument: str) -> int:
    """An integer, decimal or hexadecimal. A pointer looks like `[10]` or `[10 => 20]`; the first number is taken."""
    text = argument.removeprefix("[").split(" ")[0].removesuffix("]")
    if not _NUMBER.fullmatch(text):
        raise ArgumentsError("a number")
    return int(text, 0) if "x" in text else int(text)


def flags(argument: str) -> frozenset[str]:
    """The names in `A|B`; `0` and a missing argument have none."""
    return frozenset(argument.split("|")) - {"0", ""}


def vector(argument: str) -> tuple[bytes, bool]:
    """The bytes of an array of iovec, one behind the other, and whether strace printed all of them."""
    if not argument.startswith("["):
        raise ArgumentsError("an array of iovec")
    parts: list[bytes] = []
    complete = True
    for item in split(argument, 1)[0]:
        if not item.startswith("{iov_base="):
            return b"".join(parts), False
        content, whole = string(split(item, len("{iov_base="))[0][0])
        parts.append(content)
        complete = complete and whole
    return b"".join(parts), complete
