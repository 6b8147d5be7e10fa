"""What must hold, as the gate's file says, and what no workload has put to the test."""

from collections.abc import Iterable, Sequence

from postcrash.store.gate_run import Failure, Part, cause_id, validated


def unasked(part: Part, name: str) -> Failure:
    """The failure of the part if no workload puts the property `name` to the test."""
    why = f"{name} must hold, and no workload put this to the test"
    return Failure(
        cause=cause_id((part.target, part.model, name, why)),
        verdict="undecided",
        judge=name,
        message=why,
        workloads=0,
        known=part.hold.get(name),
    )


def with_unasked(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of a whole gate. One is undecided if a property must hold that nothing puts to the test.

    All parts of one target, kernel and device model count together. If there was no time for one of them, nobody knows
    yet what would be put to the test. Then nothing is added, so that no line of the baseline can accept it.
    """
    asked = {(_ground(part), name) for part in parts for name, workloads in part.tested.items() if workloads}
    unknown = {_ground(part) for part in parts if _is_short_of_time(part)}
    return tuple(
        part
        if _ground(part) in unknown
        else _with(part, (unasked(part, name) for name in part.hold if (_ground(part), name) not in asked))
        for part in parts
    )


def _ground(part: Part) -> tuple[str, str, str]:
    return part.target, part.kernel, part.model


def _is_short_of_time(part: Part) -> bool:
    return bool(part.not_run) or any(failure.is_of_time for failure in part.failures)


def _with(part: Part, failures: Iterable[Failure]) -> Part:
    """The part with those of the failures that it does not have yet."""
    there = {failure.cause for failure in part.failures}
    new = tuple(failure for failure in failures if failure.cause not in there)
    if not new:
        return part
    verdict = "undecided" if part.verdict == "holds" else part.verdict
    return validated(part, failures=(*part.failures, *new), verdict=verdict)
