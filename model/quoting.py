"""Splits a line of a workload into words, and quotes a word so that it survives the splitting.

Words are separated by spaces and tabs. A word in double quotes may hold spaces; inside the quotes `\\"` and `\\\\`
stand for a quote and a backslash. `#` at the start of a word begins a comment.
"""

import re
from dataclasses import dataclass

_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r'[^ \t"]+(?=[ \t]|$)')
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"(?=[ \t]|$)')


class LineError(ValueError):
    """Something else was expected at `column` (counted from 1) of a line."""

    def __init__(self, column: int, expected: str, found: str) -> None:
        super().__init__(f"column {column}: expected {expected}, found {found}")
        self.column = column
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a line: its text without quotes, the columns (from 1) where it starts and after its end."""

    text: str
    column: int
    end: int
    quoted: bool


def shown_word(text: str) -> str:
    """`text` as error messages show it: quoted, escaped, cut after 40 characters."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def split_line(line: str) -> list[Token]:
    """The words of `line`, without comments. Raises `LineError` if the quoting is wrong."""
    tokens = []
    at = _skip_blank(line, 0)
    while at < len(line) and line[at] != "#":
        token, at = _read_token(line, at)
        tokens.append(token)
        at = _skip_blank(line, at)
    return tokens


def quote(word: str) -> str:
    """`word` in the form from which `split_line` gives it back."""
    if word and not word.startswith("#") and not set(word) & set(' \t"'):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _skip_blank(line: str, at: int) -> int:
    match = _BLANK.match(line, at)
    return match.end() if match else at


def _read_token(line: str, at: int) -> tuple[Token, int]:
    if match := _BARE.match(line, at):
        token = Token(match[0], at + 1, match.end() + 1, quoted=False)
    elif match := _QUOTED.match(line, at):
        token = Token(re.sub(r"\\(.)", r"\1", match[1]), at + 1, match.end() + 1, quoted=True)
    else:
        expected = "a word in double quotes" if line[at] == '"' else "a word, quoted as a whole or not at all"
        raise LineError(at + 1, expected, shown_word(line[at:]))
    for character in token.text:
        if not character.isprintable():
            raise LineError(at + 1, "printable characters", shown_word(token.text))
    return token, match.end()
