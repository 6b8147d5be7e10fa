"""How many crash states break a judge, counted exactly from the certificates of a run."""

from itertools import product
from typing import Any

from postcrash._core import Interval
from postcrash.harness.certify import settled
from postcrash.harness.judges import Judge
from postcrash.model import History, Observation, Verdict, Workload

JUDGED_MAX = 20_000
"""Observations that are judged; more are not counted."""


def violating(
    certificates: list[dict[str, Any]], intervals: list[Interval], workload: Workload, judge: Judge
) -> tuple[int, int] | None:
    """Crash states that break `judge`, and all that were covered; None where it would take too long to count them.

    Contents that a recovery left open are gone through one by one, each with the number of states that have it.
    """
    judged, broken, covered = 0, 0, 0
    known: dict[tuple[int, int], bool] = {}
    for number, certificate in enumerate(certificates):
        if "executions" not in certificate or not judge.wants(certificate["recover"]):
            continue
        interval = intervals[certificate["index"]]
        history = History(workload, certificate["started"], certificate["returned"])
        covered += int(certificate["covered"])
        for choices, outcome in certificate["executions"]:
            fixed = [(component, version) for component, version in choices]
            wire = certificate["outcomes"][outcome]["observation"]
            open_ = _open(wire)
            if not open_ and (number, outcome) not in known:
                judged += 1
                known[number, outcome] = _breaks(judge, history, wire)
            if not open_:
                broken += interval.covered(fixed) if known[number, outcome] else 0
                continue
            for versions in product(*(range(count) for count in open_.values())):
                judged += 1
                if judged > JUDGED_MAX:
                    return None
                chosen = dict(zip(open_, versions, strict=True))
                if _breaks(judge, history, settled(wire, chosen)):
                    broken += interval.covered([*fixed, *chosen.items()])
    return broken, covered


def _open(wire: dict[str, Any] | None) -> dict[int, int]:
    """Components that the observation leaves open, each with the number of its versions."""
    entries = (wire or {}).get("tree") or []
    parts = [part for entry in entries for part in entry.get("segments", ()) if isinstance(part, dict)]
    return {part["component"]: len(part["versions"]) for part in parts}


def _breaks(judge: Judge, history: History, wire: dict[str, Any] | None) -> bool:
    return wire is not None and judge.opinion(history, Observation.from_wire(wire)).verdict is Verdict.VIOLATED
