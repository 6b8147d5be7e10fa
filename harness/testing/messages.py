"""Messages of tests: the verdict with its counts, objections, and the story of a violation."""

import io
import shlex
import textwrap
import time

from rich.console import Console

from postcrash.harness.auditing import folder_judge
from postcrash.harness.errors import HarnessError
from postcrash.harness.examination.coverage import states_text
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.minimize import MINIMIZING_SECONDS, minimized_on
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.testing.rig import Rig, Silence
from postcrash.model import Verdict, parse_workload
from postcrash.model.text import visible
from postcrash.reports.explanation.explanation_text import render_text
from postcrash.store.records import Finding

_WIDTH = 100


def place(plan: Plan) -> str:
    """The target, the kernel and the drive."""
    return f"{plan.target.name}, {plan.kernel}, device model {plan.how.model}, {plan.how.disk}"


def verdict_line(plan: Plan, result: Examination) -> str:
    """Returns the verdict with its counts in a line."""
    counts = f"{result.recoveries} recoveries, {result.outcomes} outcomes"
    return f"{result.verdict.name} on {place(plan)}: {states_text(result)}, {counts}"


def objections(plan: Plan, result: Examination, expected: Expectation) -> str:
    """Returns the verdict, the objections of all judges, and what the verdict means for promises."""
    lines = [verdict_line(plan, result)]
    for name, ruling in result.rulings.items():
        if ruling.verdict is not Verdict.HOLDS:
            is_ours = name != folder_judge.NAME
            meaning = expected.standing(plan.target, plan.how.model, name, ruling.verdict) if is_ours else ""
            meaning = f" ({meaning})" if meaning else ""
            lines.append(visible(f"{ruling.verdict.symbol} {name}{meaning}: {ruling.reason}"))
    lines += [f"note: {visible(note)}" for note in result.notes]
    return "\n".join(lines)


def story(rig: Rig, finding: Finding, again: str = "") -> str:
    """Describes the finding of the smallest workload: its operations, its lost writes, and how to replay it.

    `again` is the command that replays it, if it is not `postcrash repro`.
    """
    shown, title = _smallest(rig, finding)
    (shown,) = with_block_names([shown], rig.session.store)
    workload = parse_workload(shown.workload_text, shown.workload_name).without_tail()
    parts = [f"{title}:\n{textwrap.indent(workload.to_text(), '    ').rstrip()}"]
    if shown.explanation is not None:
        text = io.StringIO()
        render_text(shown.explanation, Console(file=text, width=_WIDTH))
        parts.append(text.getvalue().strip("\n"))
    parts.append(f"again: {again or _command(rig, 'repro', shown)}\nstory: {_command(rig, 'explain', shown)}")
    return "\n\n".join(parts)


def _command(rig: Rig, name: str, finding: Finding) -> str:
    return shlex.join(["postcrash", "--store", str(rig.options.store), name, finding.id])


def _smallest(rig: Rig, finding: Finding) -> tuple[Finding, str]:
    """Returns the finding of the smallest workload and a title. With the user's own check nothing is minimized."""
    if finding.checker == folder_judge.NAME:
        return finding, "the workload"
    try:
        with Spare(rig.settings, time.monotonic() + MINIMIZING_SECONDS) as machine:
            found = minimized_on(machine, rig.session, finding, rig.how.budget.recoveries, False, Silence())
    except HarnessError as error:
        return finding, f"the workload, which was not made smaller ({visible(str(error))})"
    more = ", and there was no time for more" if found.is_cut_short else ""
    return found.finding, f"the smallest workload that shows it, of {found.tried} tried{more}"
