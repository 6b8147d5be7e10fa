"""Formats the results of runs without flushes for the terminal and as JSON."""

from rich.console import Console

from postcrash.harness.auditing.flush_runs import FlushRun, RunsWithout
from postcrash.harness.cli.programs.needs_text import step_text
from postcrash.model import Verdict
from postcrash.model.text import one_line

_KEPT_SHOWN = 5


def print_runs(console: Console, runs: RunsWithout) -> None:
    """Print a line for each run: what was left out, and the verdict."""
    if runs.doubt:
        console.print(
            f"not run on {runs.target} without flushes: {one_line(runs.doubt)}", highlight=False, markup=False
        )
        return
    console.print(f"run on {runs.target}", highlight=False, markup=False)
    for run in runs.alone:
        console.print(f"  {run_text(run)}", highlight=False, markup=False)
    noticed = sum(run.verdict is Verdict.VIOLATED for run in runs.alone)
    decided = sum(run.verdict is not Verdict.UNDECIDED for run in runs.alone)
    if decided:
        console.print(f"the check notices the loss of {noticed} of {decided} flushes there", highlight=False)
    if runs.together is not None:
        console.print(f"  can go together: {run_text(runs.together)}", highlight=False, markup=False)
    elif decided - noticed > 1:
        console.print("  no two of them were found that can go together", highlight=False)
    for step in runs.kept[:_KEPT_SHOWN]:
        console.print(f"  not left out: {step_text(step)}", highlight=False, markup=False)
    if len(runs.kept) > _KEPT_SHOWN:
        console.print(f"  … and {len(runs.kept) - _KEPT_SHOWN} more", highlight=False)


def run_text(run: FlushRun) -> str:
    """A run in words."""
    numbers = ",".join(map(str, run.flushes))
    calls = ", ".join(map(step_text, run.flushes.values()))
    return one_line(f"{run.verdict.symbol} without {calls}: {_outcome(run)} [--without-flush {numbers}]")


def _outcome(run: FlushRun) -> str:
    if run.cell is None or run.doubt:
        return run.doubt
    cell = run.cell
    if cell.verdict is Verdict.HOLDS:
        return f"all {cell.states:,} crash states are fine ({cell.recoveries:,} recoveries, {cell.folders} folders)"
    return f"{cell.message}" + (f" ({cell.finding})" if cell.finding else "")


def runs_to_json(runs: RunsWithout) -> dict[str, object]:
    """The runs as decoded JSON."""
    return {
        "alone": [_run_to_json(run) for run in runs.alone],
        "together": _run_to_json(runs.together) if runs.together else None,
        "kept": [step.number for step in runs.kept],
        "doubt": runs.doubt,
    }


def _run_to_json(run: FlushRun) -> dict[str, object]:
    cell = run.cell
    return {
        "flushes": list(run.flushes),
        "calls": [step.number for step in run.flushes.values()],
        "left_out": list(run.left_out),
        "verdict": run.verdict.name.lower(),
        "outcome": _outcome(run),
        **({"states": str(cell.states), "recoveries": cell.recoveries, "finding": cell.finding} if cell else {}),
    }
