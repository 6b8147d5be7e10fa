"""A gate's result in the form of test runners: a section for each part, and an item for each judge or failure.

A judge that objects to nothing in a part has one item, which passes. Otherwise it has an item for each cause. Undecided
failures have items, too. So has a verdict that no failure explains: a section passes only if its part holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from postcrash.model import Verdict
from postcrash.model.numbers import plural
from postcrash.model.text import INVOCATION, one_line
from postcrash.reports.gate.failure_text import headline, story, unexplained_verdict
from postcrash.store.gate_run import INTERRUPTED, Failure, GateRun, Part

Status = Literal["passed", "violated", "undecided", "known", "untested"]
FAILED = frozenset[Status]({"violated", "undecided"})
"""Statuses that fail the gate."""


@dataclass(frozen=True, slots=True)
class Item:
    """A judge or a failure.

    name    one line. A cause has the same name in every run
    reason  one line
    text    all details, in several lines; empty if the reason has them
    file    the workload's file; empty if it has none
    """

    name: str
    status: Status
    reason: str
    text: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """The items of a part. `part` is None in a section about the whole run."""

    title: str
    items: tuple[Item, ...]
    part: Part | None = None

    @property
    def is_failed(self) -> bool:
        """Whether the gate fails by this section."""
        return any(item.status in FAILED for item in self.items)


def sections(run: GateRun, invocation: str = INVOCATION) -> tuple[Section, ...]:
    """The sections, in the order of the parts. A run without parts, or an interrupted one, has one section more.

    A run in which nothing was judged has not passed. Neither has an interrupted one, even if all its parts hold.
    """
    reasons = [*["the gate has no parts"] * (not run.parts), *[INTERRUPTED] * run.interrupted]
    of_parts = tuple(Section(one_line(part.title), tuple(_items(part, invocation)), part) for part in run.parts)
    return (*of_parts, *(Section("gate", (Item("gate", "undecided", reason),)) for reason in reasons[:1]))


def _items(part: Part, invocation: str) -> Iterator[Item]:
    objecting = {failure.judge for failure in part.failures if failure.is_violated}
    for judge, workloads in part.tested.items():
        if judge not in objecting:
            status: Status = "passed" if workloads else "untested"
            reason = f"put to the test in {plural(workloads, 'workload')}" if workloads else "never put to the test"
            yield Item(one_line(judge), status, reason)
    yield from (_failure(failure, invocation) for failure in part.failures)
    if reason := unexplained_verdict(part):
        yield Item("verdict", "violated" if part.gate_verdict is Verdict.VIOLATED else "undecided", reason, reason)


def _failure(failure: Failure, invocation: str) -> Item:
    name = f"{one_line(failure.judge) if failure.is_violated else 'undecided'} {failure.cause}"
    reason = headline(failure) if failure.is_new else f"known: {one_line(failure.accepted_because)}"
    return Item(name, failure.sort, reason, story(failure, invocation), failure.file)
