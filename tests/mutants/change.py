"""A change of the kernel's source that stands beside what it replaces, and the words in the kernel that choose changes.

    file = "fs/jbd2/commit.c"
    function = "journal_submit_commit_record"
    old = "write_flags |= REQ_PREFLUSH | REQ_FUA;"
    new = "write_flags |= REQ_FUA;"

`old` is whole statements, or else an expression, and must stand in `function` exactly once. One blank in it stands for
any white space, so that lines need not be kept.
"""

import hashlib
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NUMBER = "postcrash_mutant[4]"
"""The mutant's number in the kernel, in C. Four words by which it is found in the kernel's file stand before it."""
REMEDIES = "postcrash_mutant[5]"
"""The remedies that are made: a bit for each."""
REMEDIES_MAX = 32
MAGIC = (0x70636D75, 0x74616E74, 0x6E756D62, 0x65722020)
DEFINED_IN = "init/main.c"
DECLARATION = "extern unsigned int postcrash_mutant[6];\n"
DEFINITION = f"unsigned int postcrash_mutant[6] = {{{', '.join(map(hex, MAGIC))}, 0, 0}};\n"


class MutantError(Exception):
    """A row of the tables is wrong, or no longer fits the kernel's source; the text names the row."""


@dataclass(frozen=True)
class Change:
    """`new` in place of `old`. `name` is that of the row."""

    name: str
    file: str
    function: str
    old: str
    new: str

    @property
    def subsystem(self) -> str:
        """The folder of the source under fs/: `jbd2`."""
        return self.file.split("/")[1]

    def made(self, source: str, chosen: str) -> str:
        """`source`, the text of `file`, with the change made where the C expression `chosen` is true.

        Raises MutantError.
        """
        start, end = self._body(source)
        words = re.compile(r"\s+".join(map(re.escape, self.old.split())))
        found = [*words.finditer(source, start, end)]
        if len(found) != 1:
            raise MutantError(
                f"{self.name}: {self.old!r} stands {len(found)} times in {self.function}() of {self.file}"
            )
        (place,) = found
        old = place.group()
        if old.endswith((";", "}")):
            both = f"{{ if ({chosen}) {{ {self.new} }} else {{ {old} }} }}"
        else:
            both = f"({chosen} ? ({self.new}) : ({old}))"
        return source[: place.start()] + both + source[place.end() :]

    def digest(self) -> str:
        """Names the change: two with the same digest are the same, made from the same source."""
        text = "\0".join((self.file, self.function, self.old, self.new))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _body(self, source: str) -> tuple[int, int]:
        """Where the function's body starts and ends. Linux's functions end with a brace in the first column."""
        head = re.compile(
            rf"^(?:[A-Za-z_][^\n;=#]*[ *\t])?{re.escape(self.function)}\([^;{{}}]*\)[^;{{}}()]*\n\{{", re.M
        )
        heads = [*head.finditer(source)]
        if len(heads) != 1:
            raise MutantError(f"{self.name}: {self.file} has {len(heads)} functions {self.function}()")
        start = heads[0].end()
        end = source.find("\n}", start)
        return start, len(source) if end < 0 else end


ChosenChange = tuple[Change, str]
"""A change, and the C expression that is true if it is made."""


def changed(changes: Iterable[ChosenChange], text: Callable[[str], str]) -> dict[str, str]:
    """The files with all changes in them, one after the other; `text` is the stock text of a file.

    Raises MutantError.
    """
    files: dict[str, str] = {}
    for change, chosen in changes:
        source = files.get(change.file) or DECLARATION + text(change.file)
        files[change.file] = change.made(source, chosen)
    return files | {DEFINED_IN: text(DEFINED_IN) + DEFINITION}


def numbered(kernel: bytes, number: int, remedies: int = 0) -> bytes:
    """The kernel's file `kernel`, with `number` and the bits of `remedies` in it.

    Raises MutantError if it has no place for them, or several.
    """
    magic = struct.pack("<4I", *MAGIC)
    if kernel.count(magic) != 1:
        raise MutantError(f"the kernel's number stands {kernel.count(magic)} times in its file")
    place = kernel.index(magic) + len(magic)
    words = struct.pack("<2I", number, remedies)
    return kernel[:place] + words + kernel[place + len(words) :]
