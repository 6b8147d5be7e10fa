"""Crashes within recovery: judging them, and making the disks on which they happen.

The crash disk explores these crashes on crash states that stay open where the recovery did not look. For a finding, one
of these states is settled and recovered for real, and the crashes within this recovery are explored. The finding's
recording is the recording of the recovery. The finding's base is the id of the crash state.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from postcrash._core import BELOW, Recording, write_state
from postcrash.checkers import recovery
from postcrash.harness.errors import GuestLostError, LostAtWork
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.files.scratch import scratch
from postcrash.harness.guests.events import IntervalReport, RecoveredState
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import History, Observation
from postcrash.model.judge import Opinion, holds, unless_unread, violated
from postcrash.model.wire_observation import settled_below
from postcrash.store.records import Choices, Finding, IdError, parse_state_id
from postcrash.store.store import Store
from postcrash.targets import RecoveryKind

MESSAGE = "after a crash within recovery: "
"""Prefix of a finding's message if its judge looks at one recovery at a time."""


@dataclass(frozen=True, slots=True)
class SameRecovery:
    """Compares a recovery after a crash within recovery with `first`, which the first recovery showed."""

    first: Observation
    name = recovery.NAME
    version = ""

    looks_at = ("walk",)
    depends_on = ()

    def check(self, history: History, observation: Observation) -> Opinion:
        """The operations do not matter. Without a first tree, nothing could have changed."""
        if found := recovery.difference(self.first, observation):
            return violated(found)
        return unless_unread(holds(relevant=bool(self.first.tree)), self.first, observation)


@dataclass(frozen=True, slots=True)
class FirstCrash:
    """The crash state that was being recovered when the second crash came."""

    interval: int
    choices: Choices

    @staticmethod
    def of(report: IntervalReport) -> "FirstCrash | None":
        """The first crash that a report names, or None."""
        return None if report.within is None else FirstCrash(report.within.interval, report.within.choices)

    def settled(self, choices: Choices) -> list[tuple[int, int]]:
        """This state's choices, with those that `choices` of a crash within its recovery add."""
        return [*self.choices, *((c - BELOW, version) for c, version in choices if c >= BELOW)]


def first_observation(within: RecoveredState, choices: Choices) -> Observation:
    """What the interrupted recovery would have shown, in the crash states that an execution stands for."""
    chosen = {component - BELOW: version for component, version in choices if component >= BELOW}
    return Observation.from_wire(settled_below(within.observation, chosen, BELOW))


def image_of(recording: Path) -> Path:
    """The disk image on which the recording of a recovery is made. The image stands beside the recording."""
    return recording.with_name(f"{recording.name}.image")


def record_recovery(
    machine: Machine,
    source: Source,
    crashed: FirstCrash,
    choices: Choices,
    out: Path,
    recover: RecoveryKind,
    history: History,
) -> Source:
    """Recover the state for real, settled by the `choices` of a crash within. What the recovery wrote goes to `out`.

    The disk on which it is recovered is the file `image_of(out)`.
    """
    image = image_of(out)
    settled = crashed.settled(choices)
    write_state(Recording(source.recording), source.base, source.model, crashed.interval, settled, image)
    machine.record_recovery(image, recover, out, history.started, history.returned, {"device": "crash disk"})
    return Source(out, image, source.model)


def state_below(finding: Finding) -> str | None:
    """The recording of the crash state under a crash within recovery. None if the finding is about one crash."""
    try:
        return parse_state_id(finding.base)[0]
    except IdError:
        return None


@contextmanager
def source_of(store: Store, finding: Finding) -> Iterator[tuple[Source, Source | None]]:
    """The source of a finding's crash state. For a crash within recovery, also the source of the state under it."""
    recording = store.recording_path(finding.recording)
    below = state_below(finding)
    if below is None:
        yield Source(recording, store.base_path(finding.base), finding.model), None
        return
    _, interval, choices = parse_state_id(finding.base)
    path = store.recording_path(below)
    known = Recording(path)
    under = Source(path, store.base_path(Provenance.of(known).base), finding.model)
    with scratch() as folder:
        image = folder / "image"
        write_state(known, under.base, finding.model, interval, list(choices), image)
        yield Source(recording, image, finding.model), under


def judge_again(machine: Machine, under: Source, finding: Finding) -> SameRecovery:
    """The judge of a finding of `SameRecovery`."""
    _, interval, choices = parse_state_id(finding.base)
    return judge_of(machine, under, interval, choices, finding.recovery)


def judge_of(
    machine: Machine, source: Source, interval: int, choices: Sequence[tuple[int, int]], recover: RecoveryKind
) -> SameRecovery:
    """Recover the state, with files read by the kernel, and make the judge of crashes within its recovery.

    Raises GuestLostError if the guest is lost. It was not lost when the crashes were explored.
    """
    first = machine.execute(source, interval, choices, recover.by_kernel())
    if first.casualty is not None:
        lost = first.casualty
        raise GuestLostError(LostAtWork("recovery", lost.what, lost.console, lost.stacks, started=0, returned=0))
    return SameRecovery(Observation.from_wire(first.observation))
