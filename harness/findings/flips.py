"""Find out which of the lost writes of a finding matter: keep each, one at a time, and recover the state."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from postcrash._core import Interval, Recording, intervals
from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.crash_in_recovery import source_of
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import say
from postcrash.harness.findings.replay import judge_of, recovered
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.guests.machine import Machine
from postcrash.model import Verdict
from postcrash.store.records import Choices, Finding


@dataclass(frozen=True, slots=True)
class Flip:
    """A lost piece of a finding's crash state, and the verdict on the state that keeps it and is the same otherwise."""

    sector: int
    sectors: int
    verdict: Verdict


FLIPS_MAX = 100
"""The most pieces that are tried. A state that lost more is seldom a minimal one."""
VERSIONS_MAX = 1000
"""The most versions of a component that are searched for one that keeps a piece."""


def flips(session: Session, machine: Machine, finding: Finding) -> list[Flip]:
    """What the judge says when each lost piece is kept, one at a time. Raises HarnessError.

    A piece is left out if it cannot be kept without others, as on drives that do not reorder. There is nothing to try
    for crashes within recovery, and where guests were lost while they ran the workload.
    """
    with source_of(session.store, finding) as (source, under):
        if under is not None or finding.is_of_run:
            return []
        interval = intervals(Recording(source.recording), source.base, finding.model)[finding.interval]
        with judge_of(session, machine, under, finding) as judge:
            kept = islice(_kept(interval, finding.choices), FLIPS_MAX)
            return [
                Flip(
                    *interval.pieces[piece][1:], recovered(machine, source, replace(finding, choices=choices), judge)[0]
                )
                for piece, choices in kept
            ]


def find_needed_writes(
    session: Session, findings: Iterable[Finding], note: Callable[[str], None] = say, until: float | None = None
) -> list[Finding]:
    """The findings with the lost pieces that matter, which the store keeps.

    A finding that cannot be tried stays as it is, and `note` is told why. The monotonic clock ends it at `until`.
    """
    found = list(findings)
    if all(finding.needed is not None for finding in found):
        return found
    with Spare(session.settings, until) as machine:
        return [_flipped(session, machine, finding, note) for finding in found]


def _flipped(session: Session, machine: Spare, finding: Finding, note: Callable[[str], None]) -> Finding:
    if finding.needed is not None:
        return finding
    try:
        found = with_needed(finding, flips(session, machine(), finding))
    except HarnessError as error:
        note(f"{finding.id}: which of its lost writes matter was not tried: {error}")
        return finding
    session.store.put_finding(found)
    return found


def with_needed(finding: Finding, tried: Iterable[Flip]) -> Finding:
    """The finding with the lost pieces that matter."""
    return replace(
        finding, needed=tuple((each.sector, each.sectors) for each in tried if each.verdict is Verdict.HOLDS)
    )


def _kept(interval: Interval, choices: Choices) -> Iterator[tuple[int, Choices]]:
    """For each lost piece, the state that loses the same pieces but this one, if there is such a state."""
    lost = frozenset(interval.lost(choices))
    for component, version in choices:
        rest = tuple(choice for choice in choices if choice[0] != component)
        for other in range(min(len(interval.components[component][2]), VERSIONS_MAX)):
            state = (*rest, (component, other)) if other else rest
            flipped = lost - frozenset(interval.lost(state))
            if other != version and len(flipped) == 1 and len(interval.lost(state)) == len(lost) - 1:
                yield next(iter(flipped)), state
