"""The words for a failure in all formats of a gate's result. All text is safe to show."""

import textwrap
from collections.abc import Iterator

from postcrash.model import Verdict
from postcrash.model.numbers import counted, grouped, plural
from postcrash.model.text import INVOCATION, cut, one_line, visible
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part

_SHARDS_MAX = 100
_BESIDE_MAX = 10
"""The most paths of a comparison that are shown."""
NOTHING_LOST = "nothing that had been sent"


def headline(failure: Failure) -> str:
    """The judge and its message in one line: `P5: …`, or `undecided: … (mounts, P5)`."""
    judge, message = one_line(failure.judge), one_line(failure.message)
    if failure.is_violated:
        return f"{judge}: {message}"
    return f"undecided: {message}{f' ({judge})' if judge else ''}"


def facts(failure: Failure) -> Iterator[str]:
    """Lines with further details of the failure's cause."""
    if failure.is_upstream:
        yield f"known upstream: {one_line(failure.upstream)}"
    if failure.growth:
        yield one_line(failure.growth)
    elif failure.known is not None:
        states = failure.states
        is_stable = states is not None and states.failed == states.runs
        retries = f"; the crash state fails {states.failed} of {states.runs} times" if states and is_stable else ""
        yield f"known: {one_line(failure.known)}{retries}"
    if failure.standing:
        yield one_line(failure.standing)
    yield from map(one_line, failure.beside[:_BESIDE_MAX])
    if len(failure.beside) > _BESIDE_MAX:
        yield f"{plural(len(failure.beside) - _BESIDE_MAX, 'more path')} that differ"
    yield from (f"also {one_line(objection)}" for objection in failure.objections)
    if failure.is_violated:
        yield f"lost: {', '.join(map(one_line, failure.lost)) or NOTHING_LOST}"
    if failure.varies:
        yield failure.varies


def commands(failure: Failure, invocation: str = INVOCATION) -> tuple[str, ...]:
    """The commands that show more of the finding. Empty if there is no finding.

    `invocation` is how postcrash is called with the store of the finding, here and in all formats of a gate's result.
    """
    return tuple(f"{invocation} {name} {failure.finding}" for name in ("explain", "repro") if failure.finding)


def story(failure: Failure, invocation: str = INVOCATION) -> str:
    """All details in several lines: the headline, the facts, the operations and the commands."""
    smallest = f", the smallest is {one_line(failure.name)}" if failure.name else ""
    count = f"{plural(failure.workloads, 'workload')}{smallest}"
    operations = textwrap.indent(visible(failure.operations).strip("\n"), "    ")
    lines = [headline(failure), *facts(failure), count, operations, *commands(failure, invocation)]
    return "\n".join(line for line in lines if line)


def failure_counts(run: GateRun) -> str:
    """How many failures there are of each sort: `2 new, 4 known upstream, 1 undecided, 3 known, 1 fixed`."""
    counts = run.counts()
    upstream = [f"{grouped(counts.upstream)} known upstream"] if counts.upstream else []
    new, *others = (f"{grouped(getattr(counts, sort))} {sort}" for sort in ("new", "undecided", "known", "fixed"))
    return ", ".join([new, *upstream, *others])


def shard_note(run: GateRun) -> str:
    """For example ` (only shard 2/4)`; empty if the result is whole."""
    total = int(run.shards[0].partition("/")[2])
    return "" if len(run.shards) == total else cut(f" (only shard {', '.join(run.shards)})", _SHARDS_MAX)


def coverage(run: GateRun) -> str:
    """What the verdict rests on: `160 workloads, 1,234 crash states, 480 recoveries, 62 s`."""
    counts = run.counts()
    states, recoveries = counted(counts.states), grouped(counts.recoveries)
    return (
        f"{plural(counts.workloads, 'workload')}, {states} crash states, {recoveries} recoveries, {run.seconds:.0f} s"
    )


def fixed_line(line: FixedLine) -> str:
    """For example `line 7 (c-0123456789abcdef): bug 7`."""
    return f"line {line.line} ({one_line(line.cause)}): {one_line(line.why)}"


def unexplained_verdict(part: Part) -> str:
    """Why the part does not hold although it has no new failure. Empty if it has one, or if it holds."""
    if part.new or part.gate_verdict is Verdict.HOLDS:
        return ""
    not_run = [f"{plural(part.not_run, 'workload')} not run"] if part.not_run else []
    return "; ".join([*not_run, *map(one_line, part.notes)]) or "no failure says why"
