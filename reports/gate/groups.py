"""Groups the failures of a gate by cause, over all its parts."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import islice

from postcrash.model.numbers import plural
from postcrash.model.text import one_line
from postcrash.store.gate_run import Failure, GateRun, Part, importance, smallest


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Failures with one cause, the same verdict, and the same reason if they are accepted.

    The id of a cause is the same on all kernels, and differs between targets. Failures of several targets are in one
    group if the judge, its message and the kinds of lost writes are the same.

    places  the parts in which it fails, each with the failure there
    """

    places: tuple[tuple[Part, Failure], ...]

    @property
    def representative(self) -> Failure:
        """The failure with the smallest workload."""
        return smallest(failure for _, failure in self.places)

    @property
    def workloads(self) -> int:
        """The number of workloads that fail, in all parts."""
        return sum(failure.workloads for _, failure in self.places)

    def part_lines(self, most: int | None = None) -> Iterator[str]:
        """A line for each of at most `most` parts: `8 workloads of small on xfs, UML 6.1.176: f-0123456789abcdef`.

        One more line has the number of the other parts.
        """
        parts: dict[str, list[Failure]] = {}
        for part, failure in self.places:
            parts.setdefault(one_line(part.title), []).append(failure)
        for title, failures in islice(parts.items(), most):
            count = sum(failure.workloads for failure in failures)
            findings = ", ".join(dict.fromkeys(failure.finding for failure in failures if failure.finding))
            yield f"{plural(count, 'workload')} of {title}{f': {findings}' if findings else ''}"
        if most is not None and len(parts) > most:
            yield f"and in {plural(len(parts) - most, 'more part')}"


def cause_groups(run: GateRun) -> list[CauseGroup]:
    """The groups, sorted by `importance` and then by the number of workloads."""
    groups: list[list[tuple[Part, Failure]]] = []
    found: dict[Hashable, list[tuple[Part, Failure]]] = {}
    for part, failure in run.failures():
        keys = _keys(failure)
        group = next((found[key] for key in keys if key in found), None)
        if group is None:
            groups.append(group := [])
        group.append((part, failure))
        for key in keys:
            found.setdefault(key, group)
    return sorted(
        (CauseGroup(tuple(group)) for group in groups),
        key=lambda group: (*importance(group.representative), -group.workloads),
    )


def _keys(failure: Failure) -> tuple[Hashable, Hashable]:
    """Failures that share one of these keys are in one group."""
    sort = failure.verdict, failure.is_new, failure.known, failure.is_upstream
    return (*sort, failure.cause), (*sort, failure.judge, failure.message, failure.lost)
