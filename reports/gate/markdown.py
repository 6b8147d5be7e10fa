"""A gate's result as Markdown: for the summary of a job on GitHub, a comment on GitLab, or a mail.

GitHub refuses summaries of more than one mebibyte. So the summary has only some failures and parts of each sort, and
long texts are cut. The JSON has all of them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from postcrash.model.numbers import counted, grouped, plural
from postcrash.model.text import INVOCATION, cut, one_line, visible
from postcrash.reports.gate.failure_text import (
    commands,
    coverage,
    facts,
    failure_counts,
    fixed_line,
    headline,
    shard_note,
    unexplained_verdict,
)
from postcrash.reports.gate.groups import CauseGroup, cause_groups
from postcrash.reports.markdown import escaped, markdown_row, markdown_table
from postcrash.store.gate_run import GateRun, Part

ITEMS_MAX = 20
"""The most failures of each sort."""
ROWS_MAX = 100
_PARTS_MAX = 5
_NAME_MAX = 60
_TEXT_MAX = 300
_OPERATIONS_MAX = 1500
_HEADER = ("part", "target", "kernel", "device model", "verdict", "new", "undecided", "known")
_COVERED = ("workloads", "crash states", "recoveries")


def markdown(run: GateRun, invocation: str = INVOCATION) -> str:
    """The text, in GitHub's Markdown. Its first line has the verdict and the counts."""
    groups = cause_groups(run)
    violated = [
        group for group in groups if group.representative.sort == "violated" and not group.representative.is_upstream
    ]
    upstream = [group for group in groups if group.representative.is_upstream]
    undecided = [group for group in groups if group.representative.sort == "undecided"]
    known = [group for group in groups if group.representative.sort == "known"]
    unexplained = [
        [f"- {_short(part.title)}: {_short(reason)}"] for part in run.parts if (reason := unexplained_verdict(part))
    ]
    fixed_lines = [[f"- {_short(fixed_line(line))}"] for line in run.fixed]
    lines = [
        f"**{run.verdict.symbol} {run.verdict.name}**: {failure_counts(run)}; {coverage(run)}",
        "",
        f"Gate {_short(run.file)}{shard_note(run)}, postcrash {_short(run.version)}, {_short(run.started)}",
        "",
        *markdown_table((*_HEADER, *_COVERED), map(_row, run.parts[:ROWS_MAX])),
        *_omitted(len(run.parts) - ROWS_MAX),
        *_section("New failures", [_details(group, invocation) for group in violated]),
        *_section("Known upstream", [_details(group, invocation) for group in upstream]),
        *_section("Undecided", [_summary(group) for group in undecided]),
        *_section("Undecided for other reasons", unexplained),
        *_section(plural(len(known), "known cause"), [_summary(group) for group in known], is_folded=True),
        *_section(f"{plural(len(fixed_lines), 'line')} of the baseline fixed", fixed_lines, is_folded=True),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(part: Part) -> str:
    counts = Counter(failure.sort for failure in part.failures)
    place = [cut(word, _NAME_MAX) for word in (part.name, part.target, part.kernel, part.model)]
    sorts = [grouped(counts[sort]) for sort in ("violated", "undecided", "known")]
    numbers = [grouped(part.workloads), counted(int(part.states)), grouped(part.recoveries)]
    return markdown_row([*place, f"{part.gate_verdict.symbol} {part.gate_verdict.name}", *sorts, *numbers])


def _section(title: str, items: Sequence[Sequence[str]], *, is_folded: bool = False) -> Iterator[str]:
    """A heading and the lines of the items, or nothing if there are none. Folded items are shown after a click."""
    if items:
        yield from ("<details>", f"<summary>{title}</summary>", "") if is_folded else (f"## {title}", "")
        yield from (line for item in items[:ITEMS_MAX] for line in item)
        yield ""
        yield from _omitted(len(items) - ITEMS_MAX)
        yield from ("</details>", "") if is_folded else ()


def _omitted(count: int) -> Iterator[str]:
    if count > 0:
        yield from (f"And {grouped(count)} more: see the JSON.", "")


def _details(group: CauseGroup, invocation: str) -> list[str]:
    """A new failure with its smallest workload, and the commands that show more of it."""
    shown = group.representative
    name = f", {_short(shown.name)}" if shown.name else ""
    shell = "\n".join(commands(shown, invocation))
    return [
        f"### {_short(headline(shown))}",
        "",
        *([f"- {_short(shown.loss)}"] if shown.loss else []),
        *(f"- {_short(fact)}" for fact in (*facts(shown), *group.part_lines(_PARTS_MAX))),
        "",
        f"The smallest workload{name}:",
        "",
        *_fenced(shown.operations, "text"),
        "",
        *([*_fenced(shell, "sh"), ""] if shell else []),
    ]


def _summary(group: CauseGroup) -> list[str]:
    details = (*facts(group.representative), *group.part_lines(_PARTS_MAX))
    return [f"- {_short(headline(group.representative))}", *(f"  - {_short(detail)}" for detail in details)]


def _fenced(text: str, language: str) -> Iterator[str]:
    """A block of code whose fence is longer than any in the text."""
    shown = cut(visible(text).strip("\n"), _OPERATIONS_MAX)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    yield from (f"{fence}{language}", shown, fence)


def _short(text: str) -> str:
    return escaped(cut(one_line(text), _TEXT_MAX))
