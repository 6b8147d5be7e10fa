"""The failures of a gate by what is wrong, over all its parts."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from postcrash.model.text import one_line
from postcrash.reports.gate.failure_text import plural
from postcrash.store.gate_run import Failure, GateRun, Part, importance, smallest


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """What fails for one cause, with the same verdict, and is accepted for the same reason, if at all.

    The id of a cause is the same on all kernels. Other targets have another one, and are in the group if the judge, its
    message and the kinds of lost writes are the same.

    places  the parts in which it fails, each with the failure there
    """

    places: tuple[tuple[Part, Failure], ...]

    @property
    def shown(self) -> Failure:
        """The failure with the smallest workload."""
        return smallest(failure for _, failure in self.places)

    @property
    def workloads(self) -> int:
        """How many workloads fail, in all parts."""
        return sum(failure.workloads for _, failure in self.places)

    def told_by_part(self) -> Iterator[str]:
        """A line for each part: `8 workloads of small on ext4-current, UML 6.1.176: f-0123456789abcdef`."""
        parts: dict[str, list[Failure]] = {}
        for part, failure in self.places:
            parts.setdefault(one_line(part.title), []).append(failure)
        for title, failures in parts.items():
            count = sum(failure.workloads for failure in failures)
            findings = ", ".join(dict.fromkeys(failure.finding for failure in failures if failure.finding))
            yield f"{plural(count, 'workload')} of {title}{f': {findings}' if findings else ''}"


def cause_groups(run: GateRun) -> list[CauseGroup]:
    """In the order of `importance`, and then those with the most workloads first."""
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
    return sorted((CauseGroup(tuple(group)) for group in groups), key=_importance)


def _keys(failure: Failure) -> tuple[Hashable, Hashable]:
    """Failures that have one of these in common are in one group."""
    sort = failure.verdict, failure.is_new, failure.known, failure.is_upstream
    return (*sort, failure.cause), (*sort, failure.judge, failure.message, failure.lost)


def _importance(group: CauseGroup) -> tuple[bool, bool, bool, int]:
    return *importance(group.shown), -group.workloads
