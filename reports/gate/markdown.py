"""A gate's result as Markdown: for the summary of a job on GitHub, a comment on GitLab, or a mail.

GitHub refuses summaries of more than one mebibyte. So there is room for some failures and parts of each sort, and for
the beginning of long texts. The JSON has all of them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from postcrash.model.numbers import counted, grouped
from postcrash.model.text import INVOCATION, cut, one_line, visible
from postcrash.reports.gate.failure_text import (
    commands,
    covered,
    facts,
    fixed_line,
    headline,
    plural,
    shard,
    sorts,
    unexplained,
)
from postcrash.reports.gate.groups import CauseGroup, cause_groups
from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.store.gate_run import FixedLine, GateRun, Part

ITEMS_MAX = 20
"""The most failures of each sort."""
ROWS_MAX = 100
_PARTS_MAX = 5
_NAME_MAX = 60
_TEXT_MAX = 300
_OPERATIONS_MAX = 1500
_HEADER = ("part", "target", "kernel", "device model", "verdict", "new", "undecided", "known")
_COVERED = ("workloads", "crash states", "recoveries")
_Item = TypeVar("_Item")


def markdown(run: GateRun, invocation: str = INVOCATION) -> str:
    """The text, in GitHub's Markdown. Its first line has the verdict and the counts."""
    groups, failed = cause_groups(run), partial(_failed, invocation=invocation)
    violated = [group for group in groups if group.shown.sort == "violated" and not group.shown.is_upstream]
    upstream = [group for group in groups if group.shown.is_upstream]
    undecided = [group for group in groups if group.shown.sort == "undecided"]
    known = [group for group in groups if group.shown.sort == "known"]
    lines = [
        f"**{run.verdict.symbol} {run.verdict.name}**: {sorts(run)}; {covered(run)}",
        "",
        f"Gate {_short(run.file)}{shard(run)}, postcrash {_short(run.version)}, {_short(run.started)}",
        "",
        *markdown_table((*_HEADER, *_COVERED), map(_row, run.parts[:ROWS_MAX])),
        *_left_out(run.parts, ROWS_MAX),
        *_section("New failures", violated, failed),
        *_section("Known upstream", upstream, failed),
        *_section("Undecided", undecided, _listed),
        *_section("Undecided for other reasons", [part for part in run.parts if unexplained(part)], _unexplained),
        *_folded(plural(len(known), "known cause"), known, _listed),
        *_folded(f"{plural(len(run.fixed), 'line')} of the baseline fixed", run.fixed, _fixed),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(part: Part) -> str:
    counts = Counter(failure.sort for failure in part.failures)
    place = [cut(word, _NAME_MAX) for word in (part.name, part.target, part.kernel, part.model)]
    sorts_of = [grouped(counts[sort]) for sort in ("violated", "undecided", "known")]
    numbers = [grouped(part.workloads), counted(int(part.states)), grouped(part.recoveries)]
    return markdown_row([*place, f"{part.gated.symbol} {part.gated.name}", *sorts_of, *numbers])


def _section(title: str, items: Sequence[_Item], shown: Callable[[_Item], Iterator[str]]) -> Iterator[str]:
    """A heading and the items, or nothing if there are none."""
    if items:
        yield from (f"## {title}", "", *_items(items, shown))


def _folded(title: str, items: Sequence[_Item], shown: Callable[[_Item], Iterator[str]]) -> Iterator[str]:
    """The same behind a line that one clicks."""
    if items:
        yield from ("<details>", f"<summary>{title}</summary>", "", *_items(items, shown), "</details>", "")


def _items(items: Sequence[_Item], shown: Callable[[_Item], Iterator[str]]) -> Iterator[str]:
    for item in items[:ITEMS_MAX]:
        yield from shown(item)
    yield ""
    yield from _left_out(items, ITEMS_MAX)


def _left_out(items: Sequence[object], most: int) -> Iterator[str]:
    if len(items) > most:
        yield from (f"And {grouped(len(items) - most)} more: see the JSON.", "")


def _failed(group: CauseGroup, invocation: str) -> Iterator[str]:
    """A new failure, with all that one needs to look at it."""
    yield from (f"### {_short(headline(group.shown))}", "")
    if group.shown.loss:
        yield f"- {_short(group.shown.loss)}"
    yield from (f"- {_short(fact)}" for fact in facts(group.shown))
    yield from _parts(group)
    name = f", {_short(group.shown.name)}" if group.shown.name else ""
    yield from ("", f"The smallest workload{name}:", "", *_fenced(group.shown.operations, "text"), "")
    if told := commands(group.shown, invocation):
        yield from (*_fenced("\n".join(told), "sh"), "")


def _parts(group: CauseGroup) -> Iterator[str]:
    lines = list(group.told_by_part())
    yield from (f"- {_short(line)}" for line in lines[:_PARTS_MAX])
    if len(lines) > _PARTS_MAX:
        yield f"- and in {plural(len(lines) - _PARTS_MAX, 'more part')}"


def _listed(group: CauseGroup) -> Iterator[str]:
    yield f"- {_short(headline(group.shown))}"
    yield from (f"  - {_short(fact)}" for fact in facts(group.shown))
    yield from (f"  {line}" for line in _parts(group))


def _unexplained(part: Part) -> Iterator[str]:
    yield f"- {_short(part.title)}: {_short(unexplained(part))}"


def _fixed(line: FixedLine) -> Iterator[str]:
    yield f"- {_short(fixed_line(line))}"


def _fenced(text: str, language: str) -> Iterator[str]:
    """A block of code whose fence is longer than any in the text."""
    shown = cut(visible(text).strip("\n"), _OPERATIONS_MAX)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    yield from (f"{fence}{language}", shown, fence)


def _short(text: str) -> str:
    return escaped(cut(one_line(text), _TEXT_MAX))
