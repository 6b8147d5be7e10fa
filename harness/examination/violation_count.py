"""How many crash states break a judge, counted exactly from the certificates of a run."""

from itertools import product
from typing import NamedTuple

from postcrash._core import Interval
from postcrash.harness.examination.certificate import Certificate
from postcrash.model import History, Observation, Verdict, Workload
from postcrash.model.judge import Judge
from postcrash.model.wire_observation import WireObservation, open_components, settled

JUDGED_MAX = 20_000
"""The most observations that are judged. If there are more, nothing is counted."""


class StateCount(NamedTuple):
    """Crash states that break a judge, of all that were covered, and the recoveries that were run to cover these."""

    broken: int
    covered: int
    recoveries: int


def violating(
    certificates: list[Certificate], intervals: list[Interval], workload: Workload, judge: Judge
) -> StateCount | None:
    """Count the crash states that break `judge`, and all that were covered. None if counting would take too long.

    A state counts once for each instant of its crash interval. Contents that a recovery left open are judged version by
    version, each with the number of states that have it.
    """
    count = _Count(judge)
    wanted = [each for each in certificates if each.within is None and each.recover.shows(judge.looks_at)]
    for certificate in wanted:
        for instant in certificate.instants:
            history = History(workload, instant.started, instant.returned)
            count.add(certificate, intervals[certificate.index], history)
            if count.judged > JUDGED_MAX:
                return None
    return StateCount(count.broken, count.covered, sum(certificate.recoveries for certificate in wanted))


class _Count:
    """Counts the crash states that break a judge, instant by instant."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.judged, self.broken, self.covered = 0, 0, 0

    def add(self, certificate: Certificate, interval: Interval, history: History) -> None:
        """Count what the certificate of `interval` covers, at one of its instants."""
        self.covered += certificate.covered
        known: dict[int, bool] = {}
        for choices, outcome in certificate.executions:
            wire = certificate.outcomes[outcome].observation
            open_ = open_components(wire)
            if not open_ and outcome not in known:
                known[outcome] = self._breaks(history, wire)
            if not open_:
                self.broken += interval.covered(choices) if known[outcome] else 0
                continue
            for versions in product(*(range(count) for count in open_.values())):
                if self.judged > JUDGED_MAX:
                    return
                chosen = dict(zip(open_, versions, strict=True))
                if self._breaks(history, settled(wire, chosen)):
                    self.broken += interval.covered([*choices, *chosen.items()])

    def _breaks(self, history: History, wire: WireObservation) -> bool:
        self.judged += 1
        if wire is None:
            return False
        return self._judge.check(history, Observation.from_wire(wire)).verdict is Verdict.VIOLATED
