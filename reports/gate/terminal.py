"""A gate's result on a terminal."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from postcrash.model.numbers import counted, grouped
from postcrash.model.text import INVOCATION, one_line, visible
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
from postcrash.reports.gate.next_steps import next_steps
from postcrash.store.gate_run import GateRun, Part


def print_gate(run: GateRun, console: Console, invocation: str = INVOCATION) -> None:
    """Print what fails, what is undecided or known, a line for each part, the verdict, and what comes next."""
    groups = cause_groups(run)
    violated = [group for group in groups if group.shown.sort == "violated"]
    for number, group in enumerate(violated, 1):
        _print_failed(number, group, console, invocation)
    if violated:
        console.rule()
    others = [group for group in groups if group.shown.sort != "violated"]
    lines = [
        *(line for group in others for line in _listed(group)),
        *(f"fixed: {fixed_line(line)}" for line in run.fixed),
        *map(_part, run.parts),
    ]
    for line in lines:
        _print(line, console)
    summary = Text.assemble((run.verdict.name, "bold"), f": {sorts(run)}{shard(run)}: {covered(run)}")
    console.print(summary, soft_wrap=True)
    for line in next_steps(run, invocation):
        _print(line, console)


def _print_failed(number: int, group: CauseGroup, console: Console, invocation: str) -> None:
    shown = group.shown
    title = f" · {_inert(one_line(shown.judge))} · {plural(group.workloads, 'workload')}"
    console.rule(Text.assemble((str(number), "red"), title))
    lines = [*([one_line(shown.loss)] if shown.loss else []), headline(shown), *facts(shown), *_parts(group)]
    name = f" {one_line(shown.name)}" if shown.name else ""
    operations = visible(shown.operations).strip("\n").split("\n")
    shown_operations = (f"    {operation}" for operation in operations)
    for line in (*lines, f"workload{name}:", *shown_operations, *commands(shown, invocation)):
        _print(line, console)


def _parts(group: CauseGroup) -> Iterator[str]:
    return (f"in {line}" for line in group.told_by_part())


def _listed(group: CauseGroup) -> Iterator[str]:
    yield headline(group.shown)
    yield from (f"    {line}" for line in (*facts(group.shown), *_parts(group)))


def _part(part: Part) -> str:
    counts = f"{plural(part.workloads, 'workload')}, {counted(int(part.states))} crash states"
    broken = sum(failure.is_violated for failure in part.new)
    upstream = sum(failure.is_upstream for failure in part.new)
    failed = [f"{broken - upstream} new"] if broken > upstream else []
    failed += [f"{upstream} known upstream"] if upstream else []
    failed += [f"{len(part.new) - broken} undecided"] if len(part.new) > broken else []
    known = [f"{len(part.failures) - len(part.new)} known"] if len(part.failures) > len(part.new) else []
    why = [unexplained(part)] if unexplained(part) else []
    lacking = [f"{sum(part.lacking.values())} not on this file system"] if part.lacking else []
    why = [*lacking, *why]
    told = [counts, f"{grouped(part.recoveries)} recoveries", *failed, *known, *why]
    return f"{part.gated.symbol} {one_line(part.title)}: {', '.join(told)}"


def _print(line: str, console: Console) -> None:
    console.print(_inert(line), markup=False, highlight=False, soft_wrap=True, emoji=False)


def _inert(line: str) -> str:
    """The line, changed if GitHub's runner would take it for a command when it stands in the log of a job."""
    return ("|" if line.lstrip().startswith("::") else "") + line.replace("##[", "# #[")
