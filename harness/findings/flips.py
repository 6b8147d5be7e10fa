"""Finds out which lost writes of a finding matter: keeps each, one at a time, and recovers the state."""

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
    """A lost piece of a finding's crash state, and the verdict on the same state with this piece kept."""

    sector: int
    sectors: int
    verdict: Verdict


FLIPS_MAX = 100
"""The most pieces that are tried. A state that lost more is rarely minimal."""
VERSIONS_MAX = 1000
"""The most versions of a component among which one that keeps a piece is searched."""


def flips(session: Session, machine: Machine, finding: Finding) -> list[Flip]:
    """Judges the state with each lost piece kept, one at a time. Raises HarnessError.

    A piece is left out if it cannot be kept without others, as on drives that do not reorder. There is nothing to try
    for crashes within recovery, and where guests were lost while they ran the workload.
    """
    with source_of(session.store, finding) as (source, under):
        if under is not None or finding.is_of_run:
            return []
        interval = intervals(Recording(source.recording), source.base, finding.model)[finding.interval]
        with judge_of(session, machine, under, finding) as judge:
            found = []
            for piece, choices in islice(_states_with_piece(interval, finding.choices), FLIPS_MAX):
                _, sector, sectors = interval.pieces[piece]
                verdict, _ = recovered(machine, source, replace(finding, choices=choices), judge)
                found.append(Flip(sector, sectors, verdict))
            return found


def find_needed_writes(
    session: Session, findings: Iterable[Finding], note: Callable[[str], None] = say, until: float | None = None
) -> list[Finding]:
    """Returns the findings with their needed writes, and puts them into the store.

    A finding that cannot be tried stays as it is, and `note` gets the reason. It ends when the monotonic clock reaches
    `until`.
    """
    found = list(findings)
    if all(finding.needed is not None for finding in found):
        return found
    with Spare(session.settings, until) as machine:
        return [_find_needed_writes(session, machine, finding, note) for finding in found]


def _find_needed_writes(session: Session, machine: Spare, finding: Finding, note: Callable[[str], None]) -> Finding:
    if finding.needed is not None:
        return finding
    try:
        found = with_needed(finding, flips(session, machine(), finding))
    except HarnessError as error:
        note(f"{finding.id}: which of its lost writes matter was not tried: {error}")
        return finding
    session.store.put_finding(found)
    return found


def with_needed(finding: Finding, flips: Iterable[Flip]) -> Finding:
    """Returns the finding with the lost pieces that matter: if one of them is kept, the judge does not object."""
    needed = tuple((flip.sector, flip.sectors) for flip in flips if flip.verdict is Verdict.HOLDS)
    return replace(finding, needed=needed)


def _states_with_piece(interval: Interval, choices: Choices) -> Iterator[tuple[int, Choices]]:
    """Yields for each lost piece the state that loses all others but not this one, if there is such a state."""
    lost = frozenset(interval.lost(choices))
    for component, version in choices:
        rest = tuple(choice for choice in choices if choice[0] != component)
        for other in range(min(len(interval.components[component][2]), VERSIONS_MAX)):
            state = (*rest, (component, other)) if other else rest
            kept = lost - frozenset(interval.lost(state))
            if other != version and len(kept) == 1 and len(interval.lost(state)) == len(lost) - 1:
                yield next(iter(kept)), state
