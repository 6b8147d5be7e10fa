"""Pieces of GitHub's Markdown. Text that comes from guests is shown as it is, whatever it holds."""

import re
from collections.abc import Iterable, Sequence

from postcrash.model.text import one_line

_SPECIAL = re.compile(r"([\\`*_\[\]|<>~&$])")


def markdown_table(header: Sequence[str], rows: Iterable[str]) -> list[str]:
    """The lines of a table with `rows`, which are Markdown already, and an empty line."""
    return [markdown_row(header), "|" + " --- |" * len(header), *rows, ""]


def markdown_row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """`text` as Markdown that shows it as it is, in one line."""
    return _SPECIAL.sub(r"\\\1", one_line(text))
