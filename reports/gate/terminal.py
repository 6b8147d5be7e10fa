"""Prints a gate's result on a terminal."""

from rich.console import Console
from rich.text import Text

from postcrash.model.numbers import counted, grouped, plural
from postcrash.model.text import INVOCATION, one_line, visible
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
from postcrash.reports.gate.next_steps import next_steps
from postcrash.store.gate_run import GateRun, Part


def print_gate(run: GateRun, console: Console, invocation: str = INVOCATION) -> None:
    """Prints violations, undecided and known failures, a line for each part, the verdict, and the next steps."""
    groups = cause_groups(run)
    violated = [group for group in groups if group.representative.sort == "violated"]
    for number, group in enumerate(violated, 1):
        _print_violated(number, group, console, invocation)
    if violated:
        console.rule()
    for group in groups:
        if group.representative.sort != "violated":
            _print(headline(group.representative), console)
            for line in (*facts(group.representative), *(f"in {line}" for line in group.part_lines())):
                _print(f"    {line}", console)
    for known in run.fixed:
        _print(f"fixed: {fixed_line(known)}", console)
    for part in run.parts:
        _print(_part_line(part), console)
    summary = Text.assemble((run.verdict.name, "bold"), f": {failure_counts(run)}{shard_note(run)}: {coverage(run)}")
    console.print(summary, soft_wrap=True)
    for line in next_steps(run, invocation):
        _print(line, console)


def _print_violated(number: int, group: CauseGroup, console: Console, invocation: str) -> None:
    shown = group.representative
    title = f" · {_inert(one_line(shown.judge))} · {plural(group.workloads, 'workload')}"
    console.rule(Text.assemble((str(number), "red"), title))
    name = f" {one_line(shown.name)}" if shown.name else ""
    operations = visible(shown.operations).strip("\n").split("\n")
    lines = [
        *([one_line(shown.loss)] if shown.loss else []),
        headline(shown),
        *facts(shown),
        *(f"in {line}" for line in group.part_lines()),
        f"workload{name}:",
        *(f"    {operation}" for operation in operations),
        *commands(shown, invocation),
    ]
    for line in lines:
        _print(line, console)


def _part_line(part: Part) -> str:
    violated = sum(failure.is_violated for failure in part.new)
    upstream = sum(failure.is_upstream for failure in part.new)
    counts = {
        "new": violated - upstream,
        "known upstream": upstream,
        "undecided": len(part.new) - violated,
        "known": len(part.failures) - len(part.new),
        "not on this file system": sum(part.lacking.values()),
    }
    details = [
        plural(part.workloads, "workload"),
        f"{counted(int(part.states))} crash states",
        f"{grouped(part.recoveries)} recoveries",
        *(f"{count} {what}" for what, count in counts.items() if count),
        *filter(None, [unexplained_verdict(part)]),
    ]
    return f"{part.gate_verdict.symbol} {one_line(part.title)}: {', '.join(details)}"


def _print(line: str, console: Console) -> None:
    console.print(_inert(line), markup=False, highlight=False, soft_wrap=True, emoji=False)


def _inert(line: str) -> str:
    """The line, changed if GitHub's runner would take it for a command in the log of a job."""
    return ("|" if line.lstrip().startswith("::") else "") + line.replace("##[", "# #[")
