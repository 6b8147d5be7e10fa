"""The system calls that a recording's programs made on the target, up to a crash."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from postcrash._core import Recording
from postcrash.model.observation import error_name
from postcrash.store.explanation_data import ExplainedCall

if TYPE_CHECKING:
    from postcrash._core import CallNote

CALLS_MAX = 40
"""The most calls that are shown, the last ones."""
NO_RESULT = -(2**63)
"""The result of a call that never returns."""
_ERRNO_MAX = 4095
_RESTARTED = range(512, 517)
"""The kernel's own numbers for calls that a signal has interrupted."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A system call with its begin and end.

    number  counts from 1
    begins  between two events of the recording: 6.5 is behind event 6
    ends    likewise; None if it was under way at the crash
    """

    number: int
    thread: int
    program: str
    text: str
    begins: float
    ends: float | None = None
    result: int | None = None

    @property
    def explained(self) -> ExplainedCall:
        """The call with its result in words."""
        if self.result is None:
            return ExplainedCall(self.number, self.thread, self.program, self.text, "", "in progress")
        return ExplainedCall(self.number, self.thread, self.program, self.text, _result(self.result), "returned")


def _result(result: int) -> str:
    if result == NO_RESULT:
        return "never returns"
    if -result in _RESTARTED:
        return "interrupted by a signal"
    return error_name(-result) if -_ERRNO_MAX <= result < 0 else str(result)


def calls_before(recording: Recording, crash: int) -> list[ProgramCall]:
    """Returns the calls that had begun before a crash just before event number `crash`, in this order."""
    calls: list[ProgramCall] = []
    under_way: dict[int, int] = {}
    for place, note in _placed(recording, crash):
        match note:
            case (_, "call-begins", thread, program, text):
                under_way[thread] = len(calls)
                calls.append(ProgramCall(len(calls) + 1, thread, program, text, place))
            case (_, "call-ends", thread, result):
                index = under_way.pop(thread)
                calls[index] = replace(calls[index], ends=place, result=result)
    return calls


def _placed(recording: Recording, crash: int) -> Iterator[tuple[float, "CallNote"]]:
    """Yields the notes with their places. Notes between the same two events are evenly spaced."""
    notes = [note for note in recording.calls() if note[0] <= crash]
    together = Counter(note[0] for note in notes)
    passed: Counter[int] = Counter()
    for note in notes:
        events = note[0]
        passed[events] += 1
        yield events - 1 + passed[events] / (together[events] + 1), note
