"""The events of a recording by name. postcrash-core gives them as the same tuples, without names."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from postcrash._core import Recording


class WriteEvent(NamedTuple):
    """A write is submitted. Its data is `Recording.data` of the event's number."""

    kind: Literal["write"]
    id: int
    sector: int
    sectors: int
    fua: bool
    preflush: bool


class ZeroEvent(NamedTuple):
    """A discard or a write-zeroes is submitted."""

    kind: Literal["zero"]
    id: int
    sector: int
    sectors: int
    discard: bool


class FlushEvent(NamedTuple):
    """A flush of a disk is submitted."""

    kind: Literal["flush"]
    id: int
    disk: int = 0


class CompletionEvent(NamedTuple):
    """The request with this id is completed."""

    kind: Literal["complete"]
    id: int


class StartEvent(NamedTuple):
    """An operation of the workload starts."""

    kind: Literal["started"]
    operation: int


class ReturnEvent(NamedTuple):
    """An operation of the workload returns."""

    kind: Literal["returned"]
    operation: int
    errno: int


class DurableEvent(NamedTuple):
    """The set-up of the workload is durable."""

    kind: Literal["durable"] = "durable"


MarkEvent = StartEvent | ReturnEvent | DurableEvent
Event = WriteEvent | ZeroEvent | FlushEvent | CompletionEvent | MarkEvent
_TYPES: dict[str, Callable[[Iterable[Any]], Event]] = {
    "write": WriteEvent._make,
    "zero": ZeroEvent._make,
    "flush": lambda event: FlushEvent(*event),
    "complete": CompletionEvent._make,
    "started": StartEvent._make,
    "returned": ReturnEvent._make,
    "durable": DurableEvent._make,
}


def recording_events(recording: Recording) -> list[Event]:
    """Returns the events of `recording` in the order of the disk."""
    return [_TYPES[event[0]](event) for event in recording.events()]
