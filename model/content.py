"""What a file of a tree holds. Judges look at contents only through these functions, which settle choices."""

from collections.abc import Collection, Iterator

from postcrash.model.choices import UndecidedBytes, settle
from postcrash.model.pattern import TAG_MAX, WORD_BYTES, pattern
from postcrash.model.segments import Segment, Segments, clipped, write_of
from postcrash.model.tree import Entry


def runs(entry: Entry, start: int, end: int) -> Iterator[Segment]:
    """What is between `start` and `end`, in order, as far as the file reaches. Choices are settled one by one."""
    for part in stretches(entry, start, end):
        if isinstance(part, UndecidedBytes):
            yield from settle(part, lambda version: version)
        else:
            yield part


def source_at(entry: Entry, offset: int) -> str | None:
    """Where the byte at `offset` comes from. None past the end, and where `entry` does not say."""
    return next((run.source for run in runs(entry, offset, offset + 1)), None)


def sources(entry: Entry, start: int, end: int) -> frozenset[str | None]:
    """Where the bytes from `start` up to `end` come from. None stands for bytes past the end or not known."""
    found = list(runs(entry, start, end))
    beyond = {None} if sum(run.end - run.start for run in found) < end - start else set()
    return frozenset[str | None](run.source for run in found) | beyond


def all_from(entry: Entry, start: int, end: int, allowed: Collection[str | None]) -> bool:
    """Whether every byte from `start` up to `end` exists and comes from one of `allowed`, or is the same as its byte.

    None among `allowed` stands for bytes past the end or not known.
    """

    def fine(version: Segments) -> bool:
        return all(run.source in allowed or _is_alike(run, allowed) for run in version)

    parts = stretches(entry, start, end)
    if None not in allowed and sum(part.end - part.start for part in parts) < end - start:
        return False
    settled = tuple(part for part in parts if isinstance(part, Segment))
    return fine(settled) and all(settle(part, fine) for part in parts if isinstance(part, UndecidedBytes))


def _is_alike(run: Segment, allowed: Collection[str | None]) -> bool:
    """Whether a short run has the bytes that one of `allowed` has at this place.

    Beside bytes of a write that were moved, a run can be too long by chance: one byte in 255 is the same as what the
    other write has there. Then it does not matter whose it is.
    """
    if run.end - run.start >= WORD_BYTES or (own := _bytes_of(run.source, run)) is None:
        return False
    return any(_bytes_of(source, run) == own for source in allowed if source is not None)


def _bytes_of(source: str, place: Segment) -> bytes | None:
    """What `source` has at the bytes of `place`. None if it is no write of a workload, or cannot have any there."""
    write = write_of(source)
    if write is None or write[0] > TAG_MAX or place.start < write[1]:
        return None
    return pattern(write[0], place.start - write[1], place.end - place.start)


def any_from(entry: Entry, wanted: Collection[str]) -> bool:
    """Whether any byte of the file comes from one of `wanted`."""

    def found(version: Segments) -> bool:
        return any(run.source in wanted for run in version)

    parts = stretches(entry, 0, entry.size)
    settled = tuple(part for part in parts if isinstance(part, Segment))
    return found(settled) or any(settle(part, found) for part in parts if isinstance(part, UndecidedBytes))


def stretches(entry: Entry, start: int, end: int) -> list[Segment | UndecidedBytes]:
    """What is between `start` and `end`, in order, with choices that are not settled."""
    choices = [choice.within(start, end) for choice in entry.choices if choice.start < end and choice.end > start]
    if not choices:
        return list(clipped(entry.segments, start, end))
    return sorted([*clipped(entry.segments, start, end), *choices], key=lambda part: part.start)
