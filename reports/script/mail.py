"""A finding as plain text for a mailing list. Lines have at most 72 characters, except commands and scripts."""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from postcrash._core import DeviceModel
from postcrash.properties.promises import Statements, said_of
from postcrash.reports.explanation.explanation import CONSOLE, last_lines
from postcrash.reports.explanation.explanation_text import ALL_THERE, UNSENT, place, when
from postcrash.reports.store.explained import ExplainedOperation, ExplainedWrite, Explanation, PathComparison
from postcrash.reports.store.records import Finding
from postcrash.reports.text import visible
from postcrash.targets import Target

WIDTH = 72
SUBJECT_WIDTH = 75
_STATUS = {"set-up": "", "returned": "", "in progress": "in progress at the power cut", "not started": "not started"}


@dataclass(frozen=True, slots=True)
class Mail:
    """What a mail says besides the finding and its explanation.

    statement  what the judge expects, in prose
    states     how many crash states show a violation of the judge, in words
    tried      how the script was run and what it showed, in words
    script     the reproducer; empty if there is none
    """

    statement: str
    states: str
    tried: str
    script: str


def mail(finding: Finding, explanation: Explanation, target: Target, told: Mail) -> str:
    """The text, ready to be sent."""
    subject = textwrap.shorten(f"[BUG] {target.fstype}: {visible(finding.message)}", SUBJECT_WIDTH, placeholder=" …")
    sections = [
        f"Subject: {subject}",
        _what(finding, target, told.statement),
        _where(finding, target),
        _operations(explanation.operations),
        _trees(explanation),
        _losses(explanation),
        *_evidence(finding, explanation),
        f"How often\n\n{_wrapped(told.states)}",
        f"Reproducer\n\n{_wrapped(told.tried)}",
    ]
    script = f"\n---- 8< ---- reproduce.sh\n{told.script}---- >8 ----\n" if told.script else ""
    return "\n\n".join(sections) + "\n" + script


def _evidence(finding: Finding, explanation: Explanation) -> Iterator[str]:
    """What the guest printed. The mail's readers have no store in which to look up a console."""
    for said in explanation.evidence:
        text = said.text
        if said.title == CONSOLE:
            text = last_lines(finding.casualty.console if finding.casualty else "")
        if text.strip():
            yield f"{visible(said.title).capitalize()}\n\n{_indented(visible(text))}"


def _wrapped(text: str, indent: str = "", hanging: str | None = None) -> str:
    following = indent if hanging is None else hanging
    return textwrap.fill(
        visible(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=following,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")


def _what(finding: Finding, target: Target, statement: str) -> str:
    parts = [
        f"A power cut can leave {target.fstype} in a state that breaks this expectation ({finding.checker}):",
        statement,
        f"Found after recovery: {finding.message}.",
        _promised(said_of(target, finding.model, finding.checker)),
    ]
    return "\n\n".join(_wrapped(part, "  " if part is statement else "") for part in parts)


def _promised(about: Statements) -> str:
    if about.promise:
        return f"It is promised: {about.promise.cited}."
    return f"The documentation does not promise it{f': {about.denial.cited}' if about.denial else ''}."


def _where(finding: Finding, target: Target) -> str:
    facts = {
        "Kernel": finding.kernel + (f" ({finding.built.told})" if finding.built is not None else ""),
        "mkfs": " ".join(target.mkfs),
        "Mount": f"-t {target.fstype}" + (f" -o {target.options}" if target.options else ""),
        "Disk": f"{target.size_mib} MiB; {DeviceModel(finding.model).prose}",
        "Found by": f"postcrash, finding {finding.id}, crash state {finding.state}",
    }
    return "\n".join(_wrapped(fact, f"{name + ':':10}", " " * 10) for name, fact in facts.items())


def _operations(operations: Iterable[ExplainedOperation]) -> str:
    lines = ["Operations", ""]
    shown = [operation for operation in operations if operation.status != "not started"]
    for number, operation in enumerate(shown):
        if number and shown[number - 1].status == "set-up" != operation.status:
            lines.append("      (all of this was synced before)")
        status = f"   <- {_STATUS[operation.status]}" if _STATUS[operation.status] else ""
        lines.append(f"  {operation.number:3} {visible(operation.text)}{status}")
    if all(operation.status != "in progress" for operation in shown):
        lines.append("      (power cut)")
    return "\n".join(lines)


def _trees(explanation: Explanation) -> str:
    if explanation.failure:
        return f"Found\n\n{_wrapped(f'{explanation.failure}.', '  ')}"
    differing = [comparison for comparison in explanation.comparison if comparison.differs]
    blocks = [_compared(comparison) for comparison in differing]
    if not blocks:
        blocks = [_wrapped("Every name is as the operations leave it.", "  ")]
    return "\n\n".join(["Expected and found, where they differ", *blocks])


def _compared(comparison: PathComparison) -> str:
    sides = {"after the operations": comparison.allowed}
    if comparison.in_progress:
        sides = {"before the last one": comparison.allowed, "after the last one": comparison.in_progress}
    lines = [f"  {visible(comparison.path)}"]
    for side, said in {**sides, "found": comparison.found}.items():
        lines.append(_wrapped("; ".join(said), f"    {side + ':':22}", " " * 26))
    return "\n".join(lines)


def _losses(explanation: Explanation) -> str:
    lines = ["Writes that the power cut lost, the fewest that show it", ""]
    lines += [_wrapped(_lost(write), "  - ", "    ") for write in explanation.lost]
    if explanation.lost_omitted:
        lines.append(f"  - and {explanation.lost_omitted} more")
    if not explanation.lost:
        lines.append(_wrapped(f"None. {ALL_THERE}", "  "))
    lines += [_wrapped(f"{operation}: {UNSENT}", "  - ", "    ") for operation in explanation.unsent]
    return "\n".join(lines)


def _lost(write: ExplainedWrite) -> str:
    return f"{write.words} ({place(write)}, {when(write)})"
