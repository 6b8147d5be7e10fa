"""Check certificates: their counts by the recording, and random crash states by recovering them once more."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from postcrash._core import Interval, Recording, intervals
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model.wire_observation import WireObservation, comparable, settled


@dataclass(frozen=True, slots=True)
class Trial:
    """One crash state of a certificate: what the certificate says of it, and what its recovery showed."""

    interval: int
    choices: tuple[tuple[int, int], ...]
    predicted: WireObservation
    observed: WireObservation

    @property
    def confirmed(self) -> bool:
        """Whether the certificate was right."""
        return bool(self.predicted == self.observed)


def certify(
    machine: Machine, source: Source, certificates: list[Certificate], samples: int, seed: int, *, is_whole: bool
) -> Iterator[Trial]:
    """Recover `samples` random states, spread evenly over the certificates of one recording. The kernel reads files.

    Within a crash interval all states that the certificate covers are equally likely. Raises UsageError if a
    certificate does not fit the recording: if its instants or its counts are not those of the crash interval, or if
    `is_whole` (they say that no crash state was left out) and a crash interval has none.
    """
    chance = random.Random(seed)
    known = _intervals(source)
    if is_whole:
        _check_intervals(source, certificates, known)
    covered = [certificate for certificate in certificates if certificate.executions]
    if not covered:
        raise UsageError(f"certificates of {source.recording.stem}: none of them has an execution")
    for certificate in covered:
        if certificate.index not in known:
            raise _misfit(source, certificate, f"there are only {len(known)}")
        try:
            _check_counts(certificate, known[certificate.index])
        except (ValueError, IndexError) as error:
            raise _misfit(source, certificate, error) from error
    for _ in range(samples):
        certificate = chance.choice(covered)
        interval = known[certificate.index]
        choices, predicted = _covered_state(certificate, interval, chance)
        executed = machine.execute(source, interval.index, choices, certificate.recover.by_kernel())
        yield Trial(interval.index, tuple(choices), *comparable(predicted, executed.observation))


def _check_intervals(source: Source, certificates: list[Certificate], known: dict[int, Interval]) -> None:
    """Raise UsageError unless each crash interval has a certificate for each kind of recovery."""
    covered = {(each.index, str(each.recover)) for each in certificates if each.within is None}
    for index, (_, kind) in product(known, covered):
        if (index, kind) not in covered:
            raise UsageError(f"certificates of {source.recording.stem}: there is none of crash interval {index}")


def _check_counts(certificate: Certificate, interval: Interval) -> None:
    """Raise ValueError or IndexError unless the certificate's instants and counts are what the interval makes them.

    Executions cover different states, so that the states of all of them together are those that are covered.
    """
    instants = [(each.event, each.started, each.returned) for each in certificate.instants]
    if instants != list(interval.instants):
        raise ValueError(f"its {len(instants)} instants are not those of the recording")
    if certificate.states != interval.states:
        raise ValueError(f"there are {interval.states} crash states, and it has {certificate.states}")
    weights = [0] * len(certificate.outcomes)
    for choices, outcome in certificate.executions:
        weights[outcome] += interval.covered(choices)
    if sum(weights) != certificate.covered or certificate.covered > certificate.states:
        raise ValueError(f"its executions cover {sum(weights)} crash states, and it has {certificate.covered}")
    if weights != [outcome.states for outcome in certificate.outcomes]:
        raise ValueError("an outcome's number of crash states is not the sum of those of its executions")
    if (certificate.left_out is None) != (certificate.covered == certificate.states):
        raise ValueError("it names no reason why crash states are left out although some are, or one although none is")


def _intervals(source: Source) -> dict[int, Interval]:
    """The crash intervals of a recording, by their numbers. Raises UsageError."""
    try:
        return {each.index: each for each in intervals(Recording(source.recording), source.base, source.model)}
    except ValueError as error:
        raise UsageError(f"certificates of {source.recording.stem}: {error}") from error


def _misfit(source: Source, certificate: Certificate, why: object) -> UsageError:
    return UsageError(f"certificate of {source.recording.stem}, crash interval {certificate.index}: {why}")


def _covered_state(
    certificate: Certificate, interval: Interval, chance: random.Random
) -> tuple[list[tuple[int, int]], WireObservation]:
    """A random state and its predicted observation."""
    weights = [interval.covered(choices) for choices, _ in certificate.executions]
    choices, outcome = certificate.executions[_weighted(weights, chance)]
    chosen = dict(choices)
    for component, (_, _, versions) in enumerate(interval.components):
        if component not in chosen:
            chosen[component] = _weighted(versions, chance)
    return sorted(chosen.items()), settled(certificate.outcomes[outcome].observation, chosen)


def _weighted(weights: list[int], chance: random.Random) -> int:
    """A random index. The probabilities are exactly in proportion to the weights, which are big integers."""
    drawn = chance.randrange(sum(weights))
    for version, weight in enumerate(weights):
        if drawn < weight:
            return version
        drawn -= weight
    raise AssertionError("drawn below the sum of the weights")
