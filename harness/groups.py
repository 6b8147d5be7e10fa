"""The groups of a hunt, each with its smallest workload; those that come to the same one are one group."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from postcrash.harness.causes import Cause, cause_of
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.hunt import NAMES_MAX, Group
from postcrash.harness.minimize import Minimized
from postcrash.harness.naming import named
from postcrash.reports.records import Finding
from postcrash.reports.store import Store

Minimize = Callable[[Finding], Minimized]


@dataclass(slots=True)
class Story:
    """What a hunt tells of a group.

    representative  the finding of the smallest workload of the hunt that is in the group
    minimal         the same with the smallest workload that there is; None where it was not looked for
    note            why it was not found, if it was looked for
    causes          of the findings of the hunt; a story can tell of several
    """

    representative: Finding
    minimal: Finding | None
    note: str
    causes: list[Cause]
    count: int
    names: list[str] = field(default_factory=list)

    @property
    def shown(self) -> Finding:
        """The finding with the smallest workload that is known."""
        return self.minimal or self.representative


def stories(groups: Iterable[Group], store: Store, minimize: Minimize | None) -> list[Story]:
    """The stories of the groups, those of most workloads first. Without `minimize`, one each."""
    found: dict[tuple[str, str, tuple[str, ...]], Story] = {}
    for number, group in enumerate(sorted(groups, key=lambda group: group.size)):
        told = _story(group, store, minimize)
        least = told.minimal
        if least is None:
            found["", str(number), ()] = told
            continue
        known = found.setdefault((least.checker, least.workload_text, cause_of(least).lost), told)
        if known is not told:
            known.causes += told.causes
            known.count += told.count
            known.names = [*known.names, *told.names][:NAMES_MAX]
    return sorted(found.values(), key=lambda story: -story.count)


def _story(group: Group, store: Store, minimize: Minimize | None) -> Story:
    (representative,) = named([store.finding(group.finding)], store)
    story = Story(representative, None, "", [group.cause], group.count, list(group.names))
    if minimize is not None:
        try:
            (story.minimal,) = named([minimize(representative).finding], store)
            story.representative = replace(representative, minimal=story.minimal.id)
        except InfrastructureError as error:
            story.note = str(error)
    return story


def kinds_lost(finding: Finding) -> Iterator[str]:
    """What the finding's crash state lost, in words."""
    yield from cause_of(finding).lost
