"""What comes next when a gate fails: commands that can be pasted into a shell, behind all that the gate says."""

import shlex
from collections.abc import Iterator

from postcrash.reports.gate.failure_text import plural
from postcrash.reports.gate.groups import cause_groups
from postcrash.reports.gate.run import GateRun
from postcrash.reports.text import INVOCATION

DEFAULT_FILE = "postcrash.toml"
"""The file that `postcrash gate` reads if none is named."""


def next_steps(run: GateRun, invocation: str = INVOCATION) -> Iterator[str]:
    """The lines; none if nothing is broken but what the baseline accepts.

    A shard says nothing about accepting: the whole gate does.
    Neither does a gate whose names have characters that cannot be shown, and so not be pasted.
    """
    broken = [group.shown for group in cause_groups(run) if group.shown.sort == "violated"]
    found = [failure.finding for failure in broken if failure.finding]
    if found:
        yield "next, to see how the first failure comes about, and to report it:"
        yield f"    {invocation} explain {found[0]}"
        yield f"    {invocation} report {found[0]}"
    can_be_shown = all(name.isprintable() for name in (run.file, *run.names))
    if broken and run.shards == ("1/1",) and can_be_shown:
        yield from _accepting(run, invocation, sum(failure.is_upstream for failure in broken), len(broken))


def _accepting(run: GateRun, invocation: str, upstream: int, broken: int) -> Iterator[str]:
    file = [run.file] if run.file != DEFAULT_FILE else []
    again = shlex.join(["gate", *file, *(word for name in run.names for word in ("--part", name))])
    if upstream:
        yield f"to accept {plural(upstream, 'finding')} known upstream, so that only what is new fails the gate:"
        yield f"    {invocation} {again} --accept-upstream"
    if broken > upstream:
        yield "to accept all that fails now:"
        yield f'    {invocation} {again} --accept "not looked into yet"'
