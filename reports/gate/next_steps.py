"""The next steps after a gate.

If it fails, these are commands that can be pasted into a shell. If it holds, a line says which workloads it does not
have.
"""

import shlex
from collections.abc import Iterator

from postcrash.model import Verdict
from postcrash.model.numbers import plural
from postcrash.model.text import INVOCATION
from postcrash.reports.gate.failure_text import shard_note
from postcrash.reports.gate.groups import cause_groups
from postcrash.store.gate_run import GateRun

DEFAULT_FILE = "postcrash.toml"
"""The file that `postcrash gate` reads if none is named."""


_KINDS = {
    "hunt": 'the default hunt (hunt = "default")',
    "random": "workloads of 5 to 20 operations (random = 1000)",
}
"""Workloads that are independent of properties, bugs and programs of the user, and their settings in a gate's file."""


def next_steps(run: GateRun, invocation: str = INVOCATION) -> Iterator[str]:
    """The lines. A gate that holds has only the line on workloads that it does not have.

    Shards have no commands that accept failures, because only a whole gate can accept them. Neither have gates whose
    names have characters that do not print, and so cannot be pasted.
    """
    if run.verdict is Verdict.HOLDS and not shard_note(run) and not run.names:
        kinds = {part.kind for part in run.parts}
        missing = [words for kind, words in _KINDS.items() if kind not in kinds]
        yield f"not in this gate: {', '.join(missing) or 'random workloads beyond these'} (docs/gate.md)"
    violated = [group.representative for group in cause_groups(run) if group.representative.sort == "violated"]
    findings = [failure.finding for failure in violated if failure.finding]
    if findings:
        yield "next, to see how the first failure comes about, and to report it:"
        yield f"    {invocation} explain {findings[0]}"
        yield f"    {invocation} report {findings[0]}"
    is_printable = all(name.isprintable() for name in (run.file, *run.names))
    if violated and run.shards == ("1/1",) and is_printable:
        file = [run.file] if run.file != DEFAULT_FILE else []
        command = shlex.join(["gate", *file, *(word for name in run.names for word in ("--part", name))])
        upstream = sum(failure.is_upstream for failure in violated)
        if upstream:
            yield f"to accept {plural(upstream, 'finding')} known upstream, so that only what is new fails the gate:"
            yield f"    {invocation} {command} --accept-upstream"
        if len(violated) > upstream:
            yield "to accept all that fails now:"
            yield f'    {invocation} {command} --accept "not looked into yet"'
