"""Makes text that came from a guest fit to be shown, because it may hold anything."""

from functools import lru_cache

INVOCATION = "postcrash"
"""How a shell calls postcrash if its store is where it looks for one."""


def visible(text: str) -> str:
    """`text` with everything that does not print, except line ends and tabs, as a backslash escape.

    So a kernel log cannot move a terminal's cursor, and a file name cannot turn the reading direction.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def one_line(text: str) -> str:
    """`text` as `visible` has it, with one space for each run of white space."""
    return " ".join(visible(text).split())


def cut(text: str, most: int) -> str:
    """`text`, or its first `most` characters and a sign that there are more."""
    return text if len(text) <= most else f"{text[:most]}…"


@lru_cache(maxsize=1024)
def _visible_character(character: str) -> str:
    if character in "\n\t" or character.isprintable():
        return character
    return ascii(character)[1:-1]
