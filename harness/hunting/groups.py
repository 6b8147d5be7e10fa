"""The groups of a hunt, each with its smallest workload. Groups for which the same calls are to blame become one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.minimize import MinimalFinding, OutOfTimeError
from postcrash.harness.hunting.causes import Cause, cause_of
from postcrash.harness.hunting.hunt_result import NAMES_MAX, Group
from postcrash.harness.hunting.losses import calls_to_blame, headline
from postcrash.store.records import Finding
from postcrash.store.store import Store

Minimize = Callable[[Finding], MinimalFinding]


@dataclass(slots=True)
class GroupSummary:
    """A group as a hunt reports it.

    representative  the finding with the smallest workload that the hunt ran
    minimal         the finding with the smallest workload that there is; None if it was not looked for or not found
    note            why `minimal` was not found, or why it may not be the smallest; empty if it was not looked for
    causes          the causes of the hunt's findings; a summary can have several
    messages        of the finding with the smallest workload of each cause
    """

    representative: Finding
    minimal: Finding | None
    note: str
    causes: list[Cause]
    messages: list[str]
    count: int
    names: list[str] = field(default_factory=list)
    others: list[Finding] = field(default_factory=list)
    """The smallest findings of groups that were joined with this one."""

    @property
    def headline(self) -> str:
        """After which operations what is lost, in one line."""
        return headline(self.shown)

    def add(self, other: "GroupSummary") -> None:
        """Join another group with this one."""
        self.causes += other.causes
        self.messages += other.messages
        self.count += other.count
        self.names = [*self.names, *other.names][:NAMES_MAX]

    @property
    def shown(self) -> Finding:
        """The finding with the smallest workload that is known."""
        return self.minimal or self.representative

    @property
    def other_words(self) -> list[str]:
        """The messages of the hunt's findings that differ in more than names and numbers, also from the one shown."""
        words: dict[str, str] = {}
        for cause, message in zip(self.causes, self.messages, strict=True):
            words.setdefault(cause.message, message)
        words.pop(cause_of(self.shown).message, None)
        return list(words.values())


def summaries(groups: Iterable[Group], store: Store, minimize: Minimize | None) -> list[GroupSummary]:
    """The summaries of the groups; the one with the most workloads comes first. Without `minimize`, one per group."""
    found: dict[tuple[str, str, tuple[str, ...], tuple[bool, bool]], GroupSummary] = {}
    for number, group in enumerate(sorted(groups, key=lambda group: group.size)):
        summary = _summary(group, store, minimize)
        least = summary.minimal
        if least is None:
            found["", str(number), (), (False, False)] = summary
            continue
        key = (least.checker, least.workload_text, cause_of(least).lost, _recovery_of(least))
        known = found.setdefault(key, summary)
        if known is not summary:
            known.add(summary)
    return sorted(_joined(found.values()), key=lambda summary: -summary.count)


def _joined(minimal: Iterable[GroupSummary]) -> list[GroupSummary]:
    """One group of those for which the same calls are to blame, and in which writes of the same kinds were lost.

    The group with the smallest workload stands for the others. Its calls are theirs, or the first ones of theirs. A
    group whose smallest workload is not known stays alone.
    """
    groups: list[GroupSummary] = []
    for summary in sorted(minimal, key=lambda each: len(each.shown.workload_text.splitlines())):
        same = next((group for group in groups if _has_same_blame(group, summary)), None)
        if same is None:
            groups.append(summary)
        else:
            same.add(summary)
            same.others.append(summary.shown)
    return groups


def _has_same_blame(group: GroupSummary, other: GroupSummary) -> bool:
    one, two = group.minimal, other.minimal
    if one is None or two is None:
        return False
    alike = (one.checker, _recovery_of(one), cause_of(one).lost) == (two.checker, _recovery_of(two), cause_of(two).lost)
    calls, theirs = calls_to_blame(one), calls_to_blame(two)
    return alike and bool(calls) and calls == theirs[: len(calls)]


def _recovery_of(finding: Finding) -> tuple[bool, bool]:
    """Whether a program ran before the mount, and whether the crash came within a recovery."""
    return finding.is_repaired, state_below(finding) is not None


def _summary(group: Group, store: Store, minimize: Minimize | None) -> GroupSummary:
    representative = store.finding(group.finding)
    summary = GroupSummary(
        representative,
        None,
        note="",
        causes=[group.cause],
        messages=[representative.message],
        count=group.count,
        names=list(group.names),
    )
    if minimize is not None:
        try:
            least = minimize(representative)
            (summary.minimal,) = with_block_names([least.finding], store)
            summary.representative = replace(representative, minimal=summary.minimal.id)
            summary.note = "there was no time to try all smaller workloads" if least.is_cut_short else ""
        except OutOfTimeError as error:  # there is no time for naming either
            summary.note = str(error)
            return summary
        except InfrastructureError as error:
            summary.note = str(error)
    if summary.minimal is None:
        (summary.representative,) = with_block_names([representative], store)
    return summary
