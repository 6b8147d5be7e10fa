"""A gate's result as runners of tests know results: a section for each part, an item for each thing that was judged.

A judge that objects to nothing in a part has one item, which passes. A judge that objects has an item for each cause
instead. So does everything that could not be decided. What no failure explains has an item too: a section is green only
if its part holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from postcrash.model import Verdict
from postcrash.model.text import INVOCATION, one_line
from postcrash.reports.gate.failure_text import headline, plural, story, unexplained
from postcrash.store.gate_run import INTERRUPTED, Failure, GateRun, Part

Status = Literal["passed", "violated", "undecided", "known", "untested"]
FAILED = frozenset[Status]({"violated", "undecided"})
"""What fails the gate."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was judged.

    name    one line. A cause has the same name in every run
    reason  one line
    text    all there is to say, several lines; empty if the reason says it
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
    """In the order of the parts. A run without parts, or one that was interrupted, has a section that says so.

    A run in which nothing was judged has not passed. Neither has one that the user ended, even if all its parts hold.
    """
    said = [*["the gate has no parts"] * (not run.parts), *[INTERRUPTED] * run.interrupted]
    of_parts = tuple(Section(one_line(part.title), tuple(_items(part, invocation)), part) for part in run.parts)
    return (*of_parts, *(Section("gate", (Item("gate", "undecided", reason),)) for reason in said[:1]))


def _items(part: Part, invocation: str) -> Iterator[Item]:
    objecting = {failure.judge for failure in part.failures if failure.is_violated}
    for judge, workloads in part.tested.items():
        if judge not in objecting:
            yield _judge(one_line(judge), workloads)
    yield from (_failure(failure, invocation) for failure in part.failures)
    if reason := unexplained(part):
        yield Item("verdict", "violated" if part.gated is Verdict.VIOLATED else "undecided", reason, reason)


def _judge(name: str, workloads: int) -> Item:
    if not workloads:
        return Item(name, "untested", "never put to the test")
    return Item(name, "passed", f"put to the test in {plural(workloads, 'workload')}")


def _failure(failure: Failure, invocation: str) -> Item:
    name = f"{one_line(failure.judge) if failure.is_violated else 'undecided'} {failure.cause}"
    reason = headline(failure) if failure.is_new else f"known: {one_line(failure.accepted_because)}"
    return Item(name, failure.sort, reason, story(failure, invocation), failure.file)
