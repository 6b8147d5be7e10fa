"""Certificates: the evidence for a verdict, one for each crash interval."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from postcrash.harness.examination.crash_in_recovery import FirstCrash
from postcrash.harness.guests.events import CertainCoverage, Count, Execution, Instant, IntervalReport
from postcrash.harness.wire import Message, WireError
from postcrash.model.wire_observation import WireObservation, with_tree
from postcrash.store.json_codec import Json, to_plain
from postcrash.store.store import StoreError
from postcrash.targets import RecoveryKind


@dataclass(frozen=True, slots=True)
class CertifiedOutcome(Message):
    """A distinct observation of a crash interval, and how many crash states lead to it."""

    observation: WireObservation
    states: Count


@dataclass(frozen=True, slots=True)
class Certificate(Message):
    """The executions of one crash interval by one kind of recovery, and the outcome of each.

    A certificate predicts the outcome of each crash state that it covers. For a crash within recovery it has counts
    only.
    """

    recover: RecoveryKind
    index: int
    instants: tuple[Instant, ...]
    states: Count
    covered: Count
    recoveries: int
    remembered: int
    left_out: str | None
    reached: CertainCoverage | None
    executions: tuple[Execution, ...] = ()
    outcomes: tuple[CertifiedOutcome, ...] = ()
    within: FirstCrash | None = None

    @staticmethod
    def of(report: IntervalReport, recover: RecoveryKind) -> "Certificate":
        """Makes the certificate of a crash interval from its report."""
        certificate = Certificate(
            recover=recover,
            index=report.index,
            instants=report.instants,
            states=report.states,
            covered=report.covered,
            recoveries=report.recoveries,
            remembered=report.remembered,
            left_out=report.left_out,
            reached=report.reached,
            within=FirstCrash.of(report),
        )
        if certificate.within is not None:
            return certificate
        outcomes = tuple(CertifiedOutcome(each.observation, each.states) for each in report.outcomes)
        return replace(certificate, executions=report.executions, outcomes=outcomes)

    def to_wire(self) -> Json:
        """For the store."""
        row = {
            "recover": self.recover.to_wire(),
            "index": self.index,
            "instants": to_plain(self.instants),
            "states": str(self.states),
            "covered": str(self.covered),
            "recoveries": self.recoveries,
            "remembered": self.remembered,
            "left_out": self.left_out,
            "reached": to_plain(self.reached),
        }
        if self.within is not None:
            return {**row, "within": to_plain(self.within)}
        outcomes = [{"observation": each.observation, "states": str(each.states)} for each in self.outcomes]
        return {**row, "executions": self.executions, "outcomes": outcomes}


def certificates_to_wire(certificates: Iterable[Certificate]) -> list[Json]:
    """For the store: `certificates_of` reads it.

    Trees of one run differ little, and audits record contents byte by byte. So each different entry of a tree is
    written once, where it first occurs. Later occurrences are its number in the order of first occurrences.
    """
    numbers: dict[bytes, int] = {}
    known: dict[int, list[int]] = {}
    """By the ids of trees, which are alive as long as the certificates are."""

    def shortened(tree: list[Any]) -> list[Any]:
        if id(tree) in known:
            return known[id(tree)]
        entries, known[id(tree)] = [], []
        for entry in tree:
            digest = hashlib.sha256(json.dumps(entry).encode()).digest()
            entries.append(numbers.get(digest, entry))
            known[id(tree)].append(numbers.setdefault(digest, len(numbers)))
        return entries

    return [_with_trees(certificate, shortened).to_wire() for certificate in certificates]


def certificates_of(rows: Iterable[object]) -> list[Certificate]:
    """The certificates that `certificates_to_wire` gave. Raises `StoreError` if they are damaged."""
    entries: list[Any] = []

    def whole(tree: list[Any]) -> list[Any]:
        return [entries[entry] if isinstance(entry, int) else _added(entry, entries) for entry in tree]

    try:
        return [_with_trees(Certificate.from_wire(wire), whole) for wire in rows]
    except (WireError, IndexError) as error:
        raise StoreError(f"damaged: a run is not what was put there: {error}") from error


def _with_trees(certificate: Certificate, changed: Callable[[list[Any]], list[Any]]) -> Certificate:
    """The certificate with another tree in each of its observations."""
    outcomes = (replace(each, observation=with_tree(each.observation, changed)) for each in certificate.outcomes)
    return replace(certificate, outcomes=tuple(outcomes))


def _added(entry: Any, entries: list[Any]) -> Any:
    entries.append(entry)
    return entry
