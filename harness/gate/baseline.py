"""Known failures: a text file, one failure a line, which a gate accepts.

    # cause or finding   verdict    kernels     workloads   why
    c-1a2b3c4d5e6f7a8b   violated   6.1..6.12   <=3         # docs/findings/f2fs-first-fsync.md

Kernels are a version, a range of versions whose ends may be open, or * for all. `6.1` stands for all of 6.1.x.
`<=3` is an optional limit: the most workloads of one part in which the failure is known.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from postcrash.harness.errors import UsageError
from postcrash.harness.files.output import write_text
from postcrash.harness.files.text_files import text_of
from postcrash.model.text import cut
from postcrash.store.gate_run import (
    ITEMS_MAX,
    NO_SERIES,
    Failure,
    Part,
    Sighting,
    UnseenLine,
    kernel_version,
    series_of,
)

HEADING = "# cause or finding   verdict    kernels     workloads   why"
_BYTES_MAX = 16 << 20
WHY_MAX = 2_000
"""The longest reason of a line, in characters."""
_ID = re.compile(r"[cf]-[0-9a-f]{16}")
_LIMIT = re.compile(r"<=([1-9][0-9]{0,8})")
_VERDICTS = ("violated", "undecided")
_DIRECTIONS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
"""Bidirectional classes of characters that change the direction of the text behind them."""
_NUMBERS = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}"
_RANGE = re.compile(rf"(?P<from>{_NUMBERS})?(?P<dots>\.\.)?(?P<to>{_NUMBERS})?")


@dataclass(frozen=True, slots=True)
class KernelRange:
    """Versions from `first` to `last`, and all versions that begin with one of these. An empty end is open."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> "KernelRange":
        """Parses a range such as `*`, `6.1`, `6.1..6.12`, `6.1..` or `..6.12`. Raises ValueError."""
        if text == "*":
            return KernelRange()
        match = _RANGE.fullmatch(text)
        if match is None or not (match["from"] or match["to"]) or (match["to"] and not match["dots"]):
            raise ValueError(f"{cut(repr(text), 80)} is no range of kernels such as *, 6.1, 6.1..6.12, 6.1.. or ..6.12")
        first, last = (_numbers(match[name] or "") for name in ("from", "to"))
        if last and first[: len(last)] > last:
            raise ValueError(f"{cut(repr(text), 80)} ends before it begins")
        return KernelRange(first, last if match["dots"] else first)

    def has(self, kernel: str) -> bool:
        """Whether the kernel with this label is in the range. A label without a version is in `*` only."""
        version = _numbers(kernel_version(kernel))
        if not version:
            return not (self.first or self.last)
        return version >= self.first and version[: len(self.last)] <= self.last

    def may_have(self, series: str) -> bool:
        """Whether some kernel of the series is in the range."""
        if series == NO_SERIES:
            return self.has(series)
        numbers = _numbers(series)
        return numbers >= self.first[: len(numbers)] and numbers[: len(self.last)] <= self.last


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".") if number)


@dataclass(frozen=True, slots=True)
class BaselineLine:
    """A failure that is accepted.

    id     of its cause or of its finding
    limit  the most workloads of one part that may have the failure; None: any number
    """

    number: int
    id: str
    verdict: str
    kernels: KernelRange
    why: str
    limit: int | None = None

    @property
    def key(self) -> tuple[str, str, KernelRange]:
        """Identifies the line: no two lines of one file have the same key."""
        return self.id, self.verdict, self.kernels

    def accepts(self, failure: Failure, kernel: str) -> bool:
        """Whether the line accepts the failure on the kernel with this label. No line accepts a lack of time."""
        return self.matches(failure, kernel) and self.verdict == failure.verdict and not failure.is_lack_of_time

    def matches(self, failure: Failure, kernel: str) -> bool:
        """Whether the failure has the line's id, with any verdict, on a kernel in the line's range."""
        return self.id in (failure.cause, failure.finding, failure.found) and self.kernels.has(kernel)


def load_baseline(path: Path) -> tuple[BaselineLine, ...]:
    """The lines of the file; none if it is not there. Raises UsageError with the number of the line and its content."""
    found: dict[tuple[str, str, KernelRange], BaselineLine] = {}
    try:
        for _, line in _parsed(text_of(path, _BYTES_MAX) if path.exists() else ""):
            if line is not None and (same := found.setdefault(line.key, line)) is not line:
                raise ValueError(f"{line.number}: the same as line {same.number}")
            if line is not None and len(found) > ITEMS_MAX:
                raise ValueError(f"{line.number}: more than {ITEMS_MAX} lines")
    except ValueError as error:
        raise UsageError(f"{path}:{error}") from error
    return tuple(found.values())


def _parsed(text: str) -> Iterator[tuple[str, BaselineLine | None]]:
    """Each line of the text, parsed; None for a comment or an empty line. Raises ValueError with the line's number."""
    for number, content in enumerate(_split(text), 1):
        try:
            line = _parsed_line(number, content)
        except ValueError as error:
            raise ValueError(f"{number}: {error}") from error
        yield content, line


def _split(text: str) -> list[str]:
    """The lines as an editor shows them. Other characters that Python takes for the end of a line end none."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def hidden_character(text: str) -> str:
    """The first invisible character: a control other than a tab, an end of line, or a change of direction.

    Empty if there is none.
    """
    return next((character for character in text if character != "\t" and _is_hidden(character)), "")


def _is_hidden(character: str) -> bool:
    changes_direction = unicodedata.bidirectional(character) in _DIRECTIONS
    return changes_direction or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def _parsed_line(number: int, content: str) -> BaselineLine | None:
    if hidden := hidden_character(content):
        raise ValueError(f"{hidden!r} is a character that nobody can see")
    fields, _, why = content.partition("#")
    if not fields.strip():
        return None
    words = fields.split()
    if len(words) not in (3, 4) or not why.strip():
        raise ValueError(
            f"expected `cause verdict kernels # why` or `cause verdict kernels <=N # why`, found {content[:80]!r}"
        )
    if len(why.strip()) > WHY_MAX:
        raise ValueError(f"the reason has {len(why.strip())} characters, and may have {WHY_MAX}")
    id, verdict, kernels = words[:3]
    if not _ID.fullmatch(id):
        raise ValueError(f"{id[:80]!r} is neither a cause (c-…) nor a finding (f-…)")
    if verdict not in _VERDICTS:
        raise ValueError(f"{verdict[:80]!r} is neither {' nor '.join(_VERDICTS)}")
    limit = _LIMIT.fullmatch(words[3]) if len(words) == 4 else None
    if len(words) == 4 and limit is None:
        raise ValueError(f"{words[3][:80]!r} is no number of workloads such as <=3")
    return BaselineLine(
        number, id, verdict, KernelRange.parse(kernels), why.strip(), None if limit is None else int(limit[1])
    )


def compared_with(lines: Sequence[BaselineLine], parts: Iterable[Part]) -> tuple[Part, ...]:
    """Marks what the baseline accepts in the parts. No line accepts a lack of time."""
    compared = []
    for part in parts:
        failures = []
        for failure in part.failures:
            line = _accepting_line(lines, failure, part.kernel)
            known = {"known": line.why, "known_in": line.limit} if line else {"known": None, "known_in": None}
            failures.append(failure.model_copy(update=known))
        hold: dict[str, str | None] = {}
        for name in part.hold:
            line = _accepting_line(lines, part.untested_requirement(name), part.kernel)
            hold[name] = line.why if line else None
        compared.append(part.model_copy(update={"failures": tuple(failures), "hold": hold}))
    return tuple(compared)


def _accepting_line(lines: Sequence[BaselineLine], failure: Failure, kernel: str) -> BaselineLine | None:
    """The line that accepts the failure in the most workloads. None if no line accepts it."""
    accepting = (line for line in lines if line.accepts(failure, kernel))
    return max(accepting, key=lambda line: math.inf if line.limit is None else line.limit, default=None)


def unseen_lines(
    lines: Iterable[BaselineLine], parts: Sequence[Part], places: Callable[[str], Iterable[Sighting]]
) -> tuple[UnseenLine, ...]:
    """The lines whose failures are in none of the parts. `places` returns where failures of an id were ever seen.

    A line is left out if only kernels outside its range ran at such a place, such as another release of the series.
    """
    unseen = []
    for line in lines:
        seen = {place for place in places(line.id) if line.kernels.may_have(place.series)}
        run = {part.sighting for part in parts if line.kernels.has(part.kernel)}
        outside = {part.sighting for part in parts} - run
        is_seen = any(line.matches(failure, part.kernel) for part in parts for failure in part.failures)
        if not is_seen and not seen & outside:
            unseen.append(UnseenLine(line=line.number, cause=line.id, why=line.why, places=tuple(sorted(seen))))
    return tuple(unseen)


def lines_for(new: Iterable[tuple[Failure, Part]], why: str, *, limited: bool) -> tuple[str, ...]:
    """The lines that accept failures of parts. Each failure is accepted on the series of its part's kernel.

    If they are `limited`, a line accepts no more workloads than the failure has in one part now. Failures of random
    workloads have no limit: shards draw others than a gate without shards.
    """
    limits: dict[tuple[str, str, str], int] = {}
    unlimited: set[tuple[str, str, str]] = set()
    for failure, part in new:
        key = (failure.cause, str(failure.verdict), series_of(part.kernel))
        limits[key] = max(failure.workloads, limits.get(key, 0))
        if part.kind == "random" or not limited:
            unlimited.add(key)
    reason = " ".join(why.split())
    lines = []
    for key, count in limits.items():
        cause, verdict, series = key
        limit = f"<={count}" if count and key not in unlimited else ""
        lines.append(f"{cause:<20} {verdict:<10} {series:<11} {limit:<11} # {reason}")
    return tuple(lines)


def add_lines(path: Path, lines: Iterable[str]) -> None:
    """Adds lines to the file, which is made if it is not there. A line replaces one with the same key.

    Raises InfrastructureError, and UsageError if the file is no baseline (any more).
    """
    before = text_of(path, _BYTES_MAX) if path.exists() else HEADING
    new = {line.key: content for content, line in _parsed("\n".join(lines)) if line is not None}
    try:
        kept = [new.pop(line.key, content) if line is not None else content for content, line in _parsed(before)]
    except ValueError as error:
        raise UsageError(f"{path}:{error}") from error
    write_text(str(path), "".join(f"{line}\n" for line in (*kept, *new.values())))
