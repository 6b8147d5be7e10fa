"""Known failures: a text file, one failure a line, which a gate accepts.

    # cause or finding   verdict    kernels     workloads   why
    c-1a2b3c4d5e6f7a8b   violated   6.1..6.12   <=3         # docs/findings/f2fs-first-fsync.md

Kernels are a version, a range of versions whose ends may be left open, or * for all. `6.1` stands for all of 6.1.x.
`<=3` is the most workloads of one part in which the failure is known. It may be left out.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postcrash.harness.errors import UsageError
from postcrash.harness.files.output import write_text
from postcrash.harness.files.text_files import text_of
from postcrash.model.text import cut
from postcrash.reports.gate.fixed_lines import NO_SERIES, VERSION, series_of, sighting_of
from postcrash.reports.gate.untested_requirements import unasked
from postcrash.store.gate_run import ITEMS_MAX, Failure, Part, Sighting, UnseenLine

HEADING = "# cause or finding   verdict    kernels     workloads   why"
_BYTES_MAX = 16 << 20
WHY_MAX = 2_000
"""The longest reason of a line, in characters."""
_ID = re.compile(r"[cf]-[0-9a-f]{16}")
_MOST = re.compile(r"<=([1-9][0-9]{0,8})")
_VERDICTS = ("violated", "undecided")
_TURNS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
"""Bidirectional classes of characters that change the direction of the text behind them."""
_NUMBERS = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}"
_RANGE = re.compile(rf"(?P<from>{_NUMBERS})?(?P<dots>\.\.)?(?P<to>{_NUMBERS})?")


@dataclass(frozen=True, slots=True)
class KernelRange:
    """Versions from `first` to `last`, and all versions that begin with one of these. An end that is empty is open."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> "KernelRange":
        """The range that is written `*`, `6.1`, `6.1..6.12`, `6.1..` or `..6.12`. Raises ValueError."""
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
        match = VERSION.search(kernel)
        if match is None:
            return not (self.first or self.last)
        version = _numbers(match[0])
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

    id    that of its cause or of its finding
    most  the most workloads of one part that may fail so; None: any number
    """

    number: int
    id: str
    verdict: str
    kernels: KernelRange
    why: str
    most: int | None = None

    @property
    def about(self) -> tuple[str, str, KernelRange]:
        """What the line is about. Two lines of one file are never about the same."""
        return self.id, self.verdict, self.kernels

    def is_about(self, failure: Failure, kernel: str) -> bool:
        """Whether the line is about this failure on the kernel with this label. No line is about a lack of time."""
        is_it = self.is_seen_in(failure, kernel) and self.verdict == failure.verdict
        return is_it and not failure.is_of_time

    def is_seen_in(self, failure: Failure, kernel: str) -> bool:
        """Whether the failure has the line's id, with any verdict, on a kernel that the line is about."""
        return self.id in (failure.cause, failure.finding, failure.found) and self.kernels.has(kernel)


def load_baseline(path: Path) -> tuple[BaselineLine, ...]:
    """The lines of the file; none if it is not there. Raises UsageError with the line and what stands there."""
    try:
        return tuple(_lines(text_of(path, _BYTES_MAX))) if path.exists() else ()
    except ValueError as error:
        raise UsageError(f"{path}:{error}") from error


def _lines(text: str) -> Iterable[BaselineLine]:
    seen: dict[tuple[str, str, KernelRange], int] = {}
    for number, content in enumerate(_split(text), 1):
        line = _numbered(number, content)
        if line is None:
            continue
        if (first := seen.setdefault(line.about, number)) != number:
            raise ValueError(f"{number}: the same as line {first}")
        if len(seen) > ITEMS_MAX:
            raise ValueError(f"{number}: more than {ITEMS_MAX} lines")
        yield line


def _numbered(number: int, content: str) -> BaselineLine | None:
    """As `_line`. The error has the number of the line."""
    try:
        return _line(number, content)
    except ValueError as error:
        raise ValueError(f"{number}: {error}") from error


def _split(text: str) -> list[str]:
    """The lines as an editor shows them. Other characters that Python takes for the end of a line end none."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def hidden_character(text: str) -> str:
    """The first character that hides what stands there: a control, an end of line, or a change of direction.

    Empty if there is none. A tab is none.
    """
    return next((each for each in text if each != "\t" and _is_hidden(each)), "")


def _is_hidden(character: str) -> bool:
    is_turn = unicodedata.bidirectional(character) in _TURNS
    return is_turn or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def _line(number: int, content: str) -> BaselineLine | None:
    """What one line says; None if it says nothing. Raises ValueError."""
    if unseen := hidden_character(content):
        raise ValueError(f"{unseen!r} is a character that nobody can see")
    said, _, why = content.partition("#")
    if not said.strip():
        return None
    words = said.split()
    if len(words) not in (3, 4) or not why.strip():
        raise ValueError(
            f"expected `cause verdict kernels # why` or `cause verdict kernels <=N # why`, found {content[:80]!r}"
        )
    if len(why.strip()) > WHY_MAX:
        raise ValueError(f"the reason has {len(why.strip())} characters, and may have {WHY_MAX}")
    id, verdict, kernels, *most = words
    if not _ID.fullmatch(id):
        raise ValueError(f"{id[:80]!r} is neither a cause (c-…) nor a finding (f-…)")
    if verdict not in _VERDICTS:
        raise ValueError(f"{verdict[:80]!r} is neither {' nor '.join(_VERDICTS)}")
    limits = [_MOST.fullmatch(word) for word in most]
    if None in limits:
        raise ValueError(f"{most[0][:80]!r} is no number of workloads such as <=3")
    limit = next((int(match[1]) for match in limits if match), None)
    return BaselineLine(number, id, verdict, KernelRange.parse(kernels), why.strip(), limit)


def compared_with(lines: Sequence[BaselineLine], parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts with what the baseline accepts. No line accepts that there was no time for something."""
    told = []
    for part in parts:
        failures = (_compared(failure, _line_about(lines, failure, part.kernel)) for failure in part.failures)
        hold = {name: _why_unasked(lines, part, name) for name in part.hold}
        told.append(part.model_copy(update={"failures": tuple(failures), "hold": hold}))
    return tuple(told)


def _why_unasked(lines: Sequence[BaselineLine], part: Part, name: str) -> str | None:
    """Why the baseline accepts that no workload puts the property `name` to the test; None if it does not."""
    line = _line_about(lines, unasked(part, name), part.kernel)
    return None if line is None else line.why


def _line_about(lines: Sequence[BaselineLine], failure: Failure, kernel: str) -> BaselineLine | None:
    """The line about the failure that accepts it in the most workloads, if there are several."""
    about = (line for line in lines if line.is_about(failure, kernel))
    return max(about, key=lambda line: math.inf if line.most is None else line.most, default=None)


def _compared(failure: Failure, line: BaselineLine | None) -> Failure:
    known = {"known": None, "known_in": None} if line is None else {"known": line.why, "known_in": line.most}
    return failure.model_copy(update=known)


def unseen_lines(
    lines: Iterable[BaselineLine], parts: Sequence[Part], places: Callable[[str], Iterable[Sighting]]
) -> tuple[UnseenLine, ...]:
    """The lines whose failures are in none of the parts. `places` says where something of an id was ever seen.

    A line is left out if only kernels outside its range ran at such a place, such as another release of the series.
    """
    unseen = []
    for line in lines:
        seen = {place for place in places(line.id) if line.kernels.may_have(place.series)}
        ran = {sighting_of(part) for part in parts if line.kernels.has(part.kernel)}
        outside = {sighting_of(part) for part in parts} - ran
        is_seen = any(line.is_seen_in(failure, part.kernel) for part in parts for failure in part.failures)
        if not is_seen and not seen & outside:
            told = UnseenLine(line=line.number, cause=line.id, why=line.why, places=tuple(sorted(seen)))
            unseen.append(told)
    return tuple(unseen)


def lines_for(new: Iterable[tuple[Failure, Part]], why: str, *, limited: bool) -> tuple[str, ...]:
    """The lines that accept failures of parts. Each failure is accepted on the series of its part's kernel.

    If they are `limited`, a line accepts no more workloads than the failure has in one part now. Of random workloads
    there is no such number: shards draw others than a gate without shards.
    """
    most: dict[tuple[str, str, str], int] = {}
    unlimited: set[tuple[str, str, str]] = set()
    for failure, part in new:
        about = (failure.cause, str(failure.verdict), series_of(part.kernel))
        most[about] = max(failure.workloads, most.get(about, 0))
        if part.kind == "random" or not limited:
            unlimited.add(about)
    reason = " ".join(why.split())
    lines = []
    for (cause, verdict, series), count in most.items():
        limit = f"<={count}" if count and (cause, verdict, series) not in unlimited else ""
        lines.append(f"{cause:<20} {verdict:<10} {series:<11} {limit:<11} # {reason}")
    return tuple(lines)


def begin(path: Path) -> None:
    """Make the file without any known failure, unless it is there. Raises InfrastructureError."""
    if not path.exists():
        add_lines(path, ())


def add_lines(path: Path, lines: Iterable[str]) -> None:
    """Add lines to the file, which is made if it is not there. A line about the same as an old one takes its place.

    Raises InfrastructureError, and UsageError if the file is no baseline, which somebody may have made of it meanwhile.
    """
    before = text_of(path, _BYTES_MAX) if path.exists() else HEADING
    new = {_about(0, line): line for line in lines}
    try:
        kept = [new.pop(_about(number, line), line) for number, line in enumerate(_split(before), 1)]
    except ValueError as error:
        raise UsageError(f"{path}:{error}") from error
    write_text(str(path), "".join(f"{line}\n" for line in (*kept, *new.values())))


def _about(number: int, content: str) -> object:
    """What a line is about. No other line is about the same as a comment. Raises ValueError."""
    line = _numbered(number, content)
    return content if line is None else line.about
