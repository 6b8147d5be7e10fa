"""Which lines of a baseline can go, because their failures are not there any more."""

import re
from collections.abc import Iterable, Sequence

from postcrash.store.gate_run import FixedLine, Part, Sighting, UnseenLine

VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})+")
"""The version in a kernel's label."""
NO_SERIES = "*"


def series_of(kernel: str) -> str:
    """The series of the kernel with this label, such as `6.1`; `*` if the label has no version."""
    match = VERSION.search(kernel)
    return ".".join(match[0].split(".")[:2]) if match else NO_SERIES


def sighting_of(part: Part) -> Sighting:
    """Where the failures of a part are seen."""
    return Sighting(part.name, part.target, part.model, series_of(part.kernel), part.asked)


def fixed_lines(unseen: Iterable[UnseenLine], parts: Sequence[Part]) -> tuple[FixedLine, ...]:
    """Of the `unseen` lines, whose failures no part of a whole gate shows, those whose failures are certainly gone.

    A line is fixed only if its failure was ever seen, and if everything was run that could show it: each place where it
    was seen is that of a part, and nothing in any of the parts is left open or not supported.
    """
    if any(part.lacking or part.not_run or not all(failure.is_violated for failure in part.failures) for part in parts):
        return ()
    there = {sighting_of(part) for part in parts}
    return tuple(
        FixedLine(line=line.line, cause=line.cause, why=line.why)
        for line in unseen
        if line.places and there.issuperset(line.places)
    )


def unseen_by_all(runs: Iterable[Sequence[UnseenLine]]) -> tuple[UnseenLine, ...]:
    """The lines whose failures no shard shows, each with the places where any of their stores had seen its failure."""
    by_line = [{(line.line, line.cause, line.why): set(line.places) for line in run} for run in runs]
    common = set.intersection(*map(set, by_line)) if by_line else set()
    return tuple(
        UnseenLine(line=line, cause=cause, why=why, places=tuple(sorted(set.union(*(run[key] for run in by_line)))))
        for key in sorted(common)
        for line, cause, why in [key]
    )
