"""What comes next, behind all that a gate says.

When it fails, these are commands that can be pasted into a shell. When it is green, a line says which workloads it does
not have.
"""

import shlex
from collections.abc import Iterator

from postcrash.model import Verdict
from postcrash.model.text import INVOCATION
from postcrash.reports.gate.failure_text import plural, shard
from postcrash.reports.gate.groups import cause_groups
from postcrash.store.gate_run import GateRun

DEFAULT_FILE = "postcrash.toml"
"""The file that `postcrash gate` reads if none is named."""


_KINDS = {
    "hunt": 'the default hunt (hunt = "default")',
    "random": "workloads of 5 to 20 operations (random = 1000)",
}
"""Workloads that are not about a property, a bug or a program of the user, and how a gate's file asks for them."""


def next_steps(run: GateRun, invocation: str = INVOCATION) -> Iterator[str]:
    """The lines. If nothing is broken but what the baseline accepts, the only one says what the gate does not have.

    A shard says nothing about accepting: the whole gate does.
    Neither does a gate whose names have characters that cannot be shown, and so not be pasted.
    """
    if run.verdict is Verdict.HOLDS and not shard(run) and not run.names:
        yield _not_in(run)
    broken = [group.shown for group in cause_groups(run) if group.shown.sort == "violated"]
    found = [failure.finding for failure in broken if failure.finding]
    if found:
        yield "next, to see how the first failure comes about, and to report it:"
        yield f"    {invocation} explain {found[0]}"
        yield f"    {invocation} report {found[0]}"
    can_be_shown = all(name.isprintable() for name in (run.file, *run.names))
    if broken and run.shards == ("1/1",) and can_be_shown:
        yield from _accepting(run, invocation, sum(failure.is_upstream for failure in broken), len(broken))


def _not_in(run: GateRun) -> str:
    kinds = {part.kind for part in run.parts}
    missing = [words for kind, words in _KINDS.items() if kind not in kinds]
    return f"not in this gate: {', '.join(missing) or 'random workloads beyond these'} (docs/gate.md)"


def _accepting(run: GateRun, invocation: str, upstream: int, broken: int) -> Iterator[str]:
    file = [run.file] if run.file != DEFAULT_FILE else []
    again = shlex.join(["gate", *file, *(word for name in run.names for word in ("--part", name))])
    if upstream:
        yield f"to accept {plural(upstream, 'finding')} known upstream, so that only what is new fails the gate:"
        yield f"    {invocation} {again} --accept-upstream"
    if broken > upstream:
        yield "to accept all that fails now:"
        yield f'    {invocation} {again} --accept "not looked into yet"'
