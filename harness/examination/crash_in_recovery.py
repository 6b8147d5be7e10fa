"""Crashes within recovery: judging them, and making the disks on which they happen.

The crash disk explores them on crash states that are not settled where the recovery did not look. For a finding one
such state is settled, recovered for real, and the crashes within that recovery are explored: the finding's recording is
that of the recovery, and its base is the crash state, by its id.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postcrash._core import BELOW, Recording, write_state
from postcrash.checkers import recovery
from postcrash.harness.errors import GuestLostError, LostAtWork
from postcrash.harness.examination.judges import Opinion, unless_unread
from postcrash.harness.guests.events import IntervalReport, RecoveredState
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import History, Observation, Verdict
from postcrash.reports.store.records import Choices, Finding, IdError, parse_state_id
from postcrash.reports.store.store import Store
from postcrash.targets import RecoveryKind

MESSAGE = "after a crash within recovery: "
"""Begins the message of a finding of a judge that looks at one recovery at a time."""


@dataclass(frozen=True, slots=True)
class SameRecovery:
    """Judges a recovery after a crash within the one that showed `first`."""

    first: Observation
    name = recovery.NAME
    version = ""

    def wants(self, recover: RecoveryKind) -> bool:
        """Trees are compared."""
        return recover.walk

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Nothing: whatever the operations were."""
        return ()

    def opinion(self, history: History, observation: Observation) -> Opinion:
        """Whatever the operations were. Without a first tree there is nothing that could have changed."""
        found = recovery.difference(self.first, observation)
        if found:
            return Opinion(Verdict.VIOLATED, True, found)
        return unless_unread(Opinion(Verdict.HOLDS, bool(self.first.tree), ""), self.first, observation)


@dataclass(frozen=True, slots=True)
class FirstCrash:
    """The state of a crash interval that was being recovered when the second crash came."""

    interval: int
    choices: Choices

    @staticmethod
    def of(report: IntervalReport) -> "FirstCrash | None":
        """The one that a report names."""
        return None if report.within is None else FirstCrash(report.within.interval, report.within.choices)

    def settled(self, choices: Choices) -> list[tuple[int, int]]:
        """Its choices, and what those of a crash within its recovery add to them."""
        return [*self.choices, *((c - BELOW, version) for c, version in choices if c >= BELOW)]


def first_observation(within: RecoveredState, choices: Choices) -> Observation:
    """What the recovery within which the crash came would have shown, in the states that an execution stands for."""
    chosen = {component - BELOW: version for component, version in choices if component >= BELOW}
    wire = within.observation
    tree = [
        {**entry, "segments": list(_above(entry["segments"], chosen))} if "segments" in entry else entry
        for entry in wire["tree"] or []
    ]
    return Observation.from_wire({**wire, "tree": None if wire["tree"] is None else tree})


def _above(segments: list[Any], chosen: dict[int, int]) -> Iterator[Any]:
    for segment in segments:
        if not isinstance(segment, dict):
            yield segment
        elif segment["component"] in chosen:
            yield from segment["versions"][chosen[segment["component"]]]
        else:
            yield {**segment, "component": segment["component"] + BELOW}


def image_of(recording: Path) -> Path:
    """The disk image, beside it, that the recording of a recovery is made on."""
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
    """Recover the state for real, with the `choices` of a crash within; what the recovery wrote goes to `out`.

    The disk that it was made on is the file `image_of(out)`.
    """
    image = image_of(out)
    settled = crashed.settled(choices)
    write_state(Recording(source.recording), source.base, source.model, crashed.interval, settled, image)
    machine.record_recovery(image, recover, out, history.started, history.returned, {"device": "crash disk"})
    return Source(out, image, source.model)


def state_below(finding: Finding) -> str | None:
    """The recording that the state under a crash within recovery belongs to; None where there is no such state."""
    try:
        return parse_state_id(finding.base)[0]
    except IdError:
        return None


@contextmanager
def source_of(store: Store, finding: Finding) -> Iterator[tuple[Source, Source | None]]:
    """What a finding's state is a state of; for a crash within recovery also what the state under it is one of."""
    recording = store.recording_path(finding.recording)
    below = state_below(finding)
    if below is None:
        yield Source(recording, store.base_path(finding.base), finding.model), None
        return
    _, interval, choices = parse_state_id(finding.base)
    path = store.recording_path(below)
    known = Recording(path)
    under = Source(path, store.base_path(json.loads(known.metadata)["base"]), finding.model)
    with tempfile.TemporaryDirectory(prefix="postcrash-") as folder:
        image = Path(folder) / "image"
        write_state(known, under.base, finding.model, interval, list(choices), image)
        yield Source(recording, image, finding.model), under


def judge_again(machine: Machine, under: Source, finding: Finding) -> SameRecovery:
    """The judge of a finding of `SameRecovery`."""
    _, interval, choices = parse_state_id(finding.base)
    return judge_of(machine, under, interval, choices, RecoveryKind.from_wire(finding.recover))


def judge_of(
    machine: Machine, source: Source, interval: int, choices: Sequence[tuple[int, int]], recover: RecoveryKind
) -> SameRecovery:
    """The judge of crashes within the recovery of that state, which is recovered for it, files read by the kernel.

    GuestLostError if that takes the guest with it: it did not when the crashes were explored.
    """
    first = machine.execute(source, interval, choices, recover.by_kernel())
    if first.casualty is not None:
        lost = first.casualty
        raise GuestLostError(LostAtWork("recovery", lost.what, lost.console, lost.stacks, started=0, returned=0))
    return SameRecovery(Observation.from_wire(first.observation))
