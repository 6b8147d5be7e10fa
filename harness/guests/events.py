"""The events that a crash disk sends about its work. recorders/crashdisk/src/control.rs explains their fields."""

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator

from postcrash.harness.errors import InfrastructureError, LostAtWork
from postcrash.harness.wire import Message, WireError
from postcrash.model.validation import shown
from postcrash.model.wire_observation import WireObservation, is_mounted
from postcrash.store.consoles import Casualty
from postcrash.store.records import Choices

Execution = tuple[Choices, int]
"""The choices of a recovery, and the number of its outcome."""
Count = Annotated[int, BeforeValidator(lambda wire: int(wire) if isinstance(wire, str) else wire)]
"""A number that is decimal text on the wire, because it can be too large for JSON readers."""


@dataclass(frozen=True, slots=True)
class BootEvent(Message):
    """The guest is up. `unconfined`: why its process has rights that it does not need."""

    seconds: float
    unconfined: str | None


@dataclass(frozen=True, slots=True)
class Transcript(Message):
    """What a program said, its exit status (128 + signal if it was killed), and the end of its standard error."""

    lines: tuple[str, ...]
    status: int
    errors: str


@dataclass(frozen=True, slots=True)
class FailedOperation(Message):
    """An operation of the workload, by its number, that returned an error."""

    operation: int
    errno: int


@dataclass(frozen=True, slots=True)
class GuestOutput(Message):
    """What the guest's kernel and a program that serves a mount said: the `last` of it in one line, and the whole."""

    last: str
    log: str


@dataclass(frozen=True, slots=True)
class RecordingEvent(Message):
    """A recording is made. `failed` is the first operation that returned an error.

    `transcripts` are those of the programs that it ran, in order; None if there are none. `output` is there if an
    operation or a program failed.
    """

    requests: int
    failed: FailedOperation | None
    transcripts: tuple[Transcript, ...] | None
    output: GuestOutput | None


@dataclass(frozen=True, slots=True)
class Instant(Message):
    """When a crash comes: just before `event` of the recording. By then operations had `started` and `returned`."""

    event: int
    started: int
    returned: int


@dataclass(frozen=True, slots=True)
class CertainCoverage(Message):
    """What is covered for certain: numbers of deviations from everything kept and nothing kept, and random states."""

    all_kept: int | None
    none_kept: int | None
    samples: int
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome(Message):
    """A distinct observation of a crash interval, with the number of states and the simplest one that lead to it."""

    observation: WireObservation
    states: Count
    executions: int
    choices: Choices
    lost: tuple[int, ...]
    casualty: Casualty | None = None


@dataclass(frozen=True, slots=True)
class RecoveredState(Message):
    """The crash state that was being recovered when the second crash came, and what its recovery showed."""

    interval: int
    choices: Choices
    observation: WireObservation


class ExplorationEvent(Message):
    """An event of an exploration. The last one is `ExplorationEnd`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class IntervalReport(ExplorationEvent):
    """The result of exploring one crash interval."""

    index: int
    instants: tuple[Instant, ...]
    pieces: int
    components: int
    states: Count
    covered: Count
    contents: Count
    recoveries: int
    remembered: int
    rechecks: int
    outcomes: tuple[Outcome, ...]
    executions: tuple[Execution, ...]
    left_out: str | None
    reached: CertainCoverage | None
    within: RecoveredState | None = None


@dataclass(frozen=True, slots=True)
class LostGuest(ExplorationEvent):
    """A guest was lost while it recovered a crash state. The state is recovered again in a new guest."""

    interval: int
    choices: Choices
    what: str
    console: str
    stacks: str

    @property
    def casualty(self) -> Casualty:
        """The casualty, without the crash state."""
        return Casualty(self.what, self.console, self.stacks)


@dataclass(frozen=True, slots=True)
class ProgressEvent(ExplorationEvent):
    """Recoveries so far."""

    recoveries: int


@dataclass(frozen=True, slots=True)
class Nondeterministic(ExplorationEvent):
    """Two recoveries of one crash state were observed differently."""

    interval: int
    choices: Choices
    first: WireObservation
    second: WireObservation


@dataclass(frozen=True, slots=True)
class ExplorationEnd(ExplorationEvent):
    """The end of an exploration, with the peak memory of the guest and of the crash disk."""

    recoveries: int
    seconds: float
    memory_kib: int
    disk_memory_kib: int


@dataclass(frozen=True, slots=True)
class ExecutionReport(Message):
    """One crash state was recovered."""

    observation: WireObservation
    choices: Choices
    casualty: Casualty | None

    @property
    def is_mounted(self) -> bool:
        """Whether the mount succeeded. It did not where the guest was lost."""
        return is_mounted(self.observation)


@dataclass(frozen=True, slots=True)
class Spin(Message):
    """How many seconds it took to recover a device of the guest's own, and how many entries were seen."""

    seconds: float
    entries: int


@dataclass(frozen=True, slots=True)
class SpinEvent(Message):
    """A `Spin` is done."""

    result: Spin


@dataclass(frozen=True, slots=True)
class RequestFailure(Message):
    """A request failed: through input that the user can mend, the loss of two guests, or our own machinery."""

    kind: Literal["input", "lost", "infrastructure"]
    message: str
    console: str


_KINDS: dict[str, type[Message]] = {
    "booted": BootEvent,
    "recorded": RecordingEvent,
    "interval": IntervalReport,
    "lost-guest": LostGuest,
    "lost-at-work": LostAtWork,
    "progress": ProgressEvent,
    "nondeterministic": Nondeterministic,
    "explored": ExplorationEnd,
    "executed": ExecutionReport,
    "spun": SpinEvent,
    "error": RequestFailure,
}


def read_event(line: str) -> Message:
    """The event in a line of the crash disk's output. Raises InfrastructureError if there is none."""
    try:
        wire = json.loads(line)
        kind = _KINDS[wire.pop("event")]
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise InfrastructureError(f"the crash disk sent an unknown event: {shown(line)}") from error
    try:
        return kind.from_wire(wire)
    except WireError as error:
        raise InfrastructureError(f"the crash disk sent an event that is not whole: {error}") from error
