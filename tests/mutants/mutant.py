"""The mutants: kernels of our own, each with a line (or a few) of its source changed so that crashes break it.

All are compiled into one kernel: each change stands beside what it replaces, and a number in the kernel's data says
which of them is made. So they cost one build, and the stock kernel to compare with is the same code with the number 0.

A mutant is a row of a TOML file here, one file for each part of the kernel:

    [name]
    file = "fs/jbd2/commit.c"
    function = "journal_submit_commit_record"
    old = "write_flags |= REQ_PREFLUSH | REQ_FUA;"
    new = "write_flags |= REQ_FUA;"
    breaks = "What no longer is true, in one sentence."
    target = "ext4-current"

`old` is whole statements, or else an expression, and must stand in `function` exactly once. One blank in it stands for
any white space, so that lines need not be kept.
`equivalent` says why no crash can tell the mutant from the stock kernel, `missed` why no hunt does though one could,
and `unchanged` why a hunt that compares it with the stock kernel sees nothing: a row has one only where it is so.
"""

import hashlib
import re
import struct
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

TABLES = Path(__file__).parent
NUMBER = "postcrash_mutant[4]"
"""The number in the kernel, in C. Four words by which it is found in the kernel's file stand before it."""
MAGIC = (0x70636D75, 0x74616E74, 0x6E756D62, 0x65722020)
DEFINED_IN = "init/main.c"
DECLARATION = "extern unsigned int postcrash_mutant[5];\n"
DEFINITION = f"unsigned int postcrash_mutant[5] = {{{', '.join(map(hex, MAGIC))}, 0}};\n"
_OPTIONAL = {"equivalent", "missed", "unchanged"}


class MutantError(Exception):
    """A row of the tables is wrong, or no longer fits the kernel's source; the text names the mutant."""


@dataclass(frozen=True)
class Mutant:
    """One row. `target` is the file system (with its options) on which its bug is hunted."""

    name: str
    file: str
    function: str
    old: str
    new: str
    breaks: str
    target: str
    equivalent: str = ""
    missed: str = ""
    unchanged: str = ""

    @property
    def subsystem(self) -> str:
        """The folder of the source under fs/: `jbd2`."""
        return self.file.split("/")[1]

    def change(self, source: str, number: int) -> str:
        """`source`, the text of `file`, with the change made if the kernel has this number. Raises MutantError."""
        start, end = self._body(source)
        words = re.compile(r"\s+".join(map(re.escape, self.old.split())))
        found = [*words.finditer(source, start, end)]
        if len(found) != 1:
            raise MutantError(
                f"mutant {self.name}: {self.old!r} stands {len(found)} times in {self.function}() of {self.file}"
            )
        (place,) = found
        chosen, old = f"{NUMBER} == {number}", place.group()
        if old.endswith((";", "}")):
            both = f"{{ if ({chosen}) {{ {self.new} }} else {{ {old} }} }}"
        else:
            both = f"({chosen} ? ({self.new}) : ({old}))"
        return source[: place.start()] + both + source[place.end() :]

    def digest(self) -> str:
        """Names the change: two mutants with the same digest are the same, made from the same source."""
        text = "\0".join((self.file, self.function, self.old, self.new))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _body(self, source: str) -> tuple[int, int]:
        """Where the function's body starts and ends. Linux's functions end with a brace in the first column."""
        head = re.compile(
            rf"^(?:[A-Za-z_][^\n;=#]*[ *\t])?{re.escape(self.function)}\([^;{{}}]*\)[^;{{}}()]*\n\{{", re.M
        )
        heads = [*head.finditer(source)]
        if len(heads) != 1:
            raise MutantError(f"mutant {self.name}: {self.file} has {len(heads)} functions {self.function}()")
        start = heads[0].end()
        end = source.find("\n}", start)
        return start, len(source) if end < 0 else end


def load_mutants(folder: Path = TABLES) -> tuple[Mutant, ...]:
    """The rows of all tables in `folder`, sorted by file and place. Raises MutantError."""
    mutants: list[Mutant] = []
    for table in sorted(folder.glob("*.toml")):
        for name, row in tomllib.loads(table.read_text()).items():
            mutants.append(_mutant(name, row))
    names = [mutant.name for mutant in mutants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise MutantError(f"mutant {min(twice)} is in two tables")
    return tuple(mutants)


def changed(mutants: Sequence[Mutant], text: Callable[[str], str]) -> dict[str, str]:
    """The files with all changes made, the first mutant's number being 1; `text` is the stock text of a file.

    Raises MutantError.
    """
    files: dict[str, str] = {}
    for number, mutant in enumerate(mutants, 1):
        source = files.get(mutant.file) or DECLARATION + text(mutant.file)
        files[mutant.file] = mutant.change(source, number)
    return files | {DEFINED_IN: text(DEFINED_IN) + DEFINITION}


def numbered(kernel: bytes, number: int) -> bytes:
    """The kernel's file `kernel`, with `number` in it. Raises MutantError if it has no place for it, or several."""
    magic = struct.pack("<4I", *MAGIC)
    if kernel.count(magic) != 1:
        raise MutantError(f"the kernel's number stands {kernel.count(magic)} times in its file")
    place = kernel.index(magic) + len(magic)
    return kernel[:place] + struct.pack("<I", number) + kernel[place + 4 :]


def chosen(mutants: Iterable[Mutant], names: Iterable[str]) -> tuple[Mutant, ...]:
    """Those of these names, all without any. Raises MutantError for a name that is not there."""
    rows = {mutant.name: mutant for mutant in mutants}
    wanted = tuple(names)
    if unknown := [name for name in wanted if name not in rows]:
        raise MutantError(f"there is no mutant {unknown[0]}; there are: {', '.join(rows)}")
    return tuple(rows[name] for name in wanted) or tuple(rows.values())


def _mutant(name: str, row: object) -> Mutant:
    known = {field.name for field in fields(Mutant)} - {"name"}
    if not isinstance(row, dict) or known - _OPTIONAL - row.keys() or row.keys() - known:
        raise MutantError(f"mutant {name}: a row has {', '.join(sorted(known - _OPTIONAL))}, and may say why not found")
    if wrong := [key for key, value in row.items() if not isinstance(value, str) or (not value and key != "new")]:
        raise MutantError(f"mutant {name}: {wrong[0]} is no text, or empty")
    return Mutant(name=name, **row)
