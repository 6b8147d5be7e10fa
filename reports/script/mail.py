"""A finding as plain text for a mailing list. Lines have at most 72 characters, except commands and scripts."""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from postcrash._core import DeviceModel
from postcrash.model.text import visible
from postcrash.properties.promises import practice_of, statements_of
from postcrash.reports.explanation.explanation import CONSOLE, last_lines
from postcrash.reports.explanation.explanation_text import ALL_THERE, UNSENT, place, reference_note, when
from postcrash.store.explanation_data import ExplainedOperation, ExplainedWrite, Explanation, PathComparison
from postcrash.store.records import Finding
from postcrash.targets import Target

WIDTH = 72
SUBJECT_WIDTH = 75
_MARGIN = " " * 10
"""Before the second line of a fact."""
_STATUS = {"set-up": "", "returned": "", "in progress": "in progress at the power cut", "not started": "not started"}


@dataclass(frozen=True, slots=True)
class Mail:
    """The parts of a mail besides the finding and its explanation.

    statement      what the judge expects, in prose
    states         how many crash states violate it, in words
    script_result  how the script was run and what it showed, in words
    script         the reproducer; empty if there is none
    other_kernels  results of the script on other kernels, a line each; empty if it was not run there
    recipients     addresses of maintainers and lists; empty if they are not known
    """

    statement: str
    states: str
    script_result: str
    script: str
    other_kernels: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()


def mail(finding: Finding, explanation: Explanation, target: Target, details: Mail) -> str:
    """Returns the text of the mail."""
    subject = textwrap.shorten(f"[BUG] {target.fstype}: {visible(finding.message)}", SUBJECT_WIDTH, placeholder=" …")
    sections = [
        "\n".join([*_addressed(details.recipients), f"Subject: {subject}"]),
        _what(finding, explanation, target, details.statement),
        _where(finding, target),
        _operations(explanation.operations),
        _trees(explanation),
        _losses(explanation),
        *_evidence(finding, explanation),
        f"How often\n\n{_wrapped(details.states)}",
        f"Reproducer\n\n{_wrapped(details.script_result)}",
        *_other_kernels(details.other_kernels),
    ]
    script = f"\n---- 8< ---- reproduce.sh\n{details.script}---- >8 ----\n" if details.script else ""
    return "\n\n".join(sections) + "\n" + script


def _evidence(finding: Finding, explanation: Explanation) -> Iterator[str]:
    """Yields the guest's output. Readers of the mail have no store with its console."""
    for evidence in explanation.evidence:
        text = evidence.text
        if evidence.title == CONSOLE:
            text = last_lines(finding.casualty.console if finding.casualty else "")
        if text.strip():
            yield f"{visible(evidence.title).capitalize()}\n\n{_indented(visible(text))}"


def _disks(target: Target) -> str:
    sizes = " + ".join(map(str, target.disks_mib))
    lost = "" if target.lost_disk is None else f"; disk {target.lost_disk} is lost with the crash"
    return f"{sizes} MiB{lost}"


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


def _addressed(recipients: Sequence[str]) -> Iterator[str]:
    """The header of the recipients, one a line."""
    if recipients:
        yield "To: " + ",\n    ".join(map(visible, recipients))


def _what(finding: Finding, explanation: Explanation, target: Target, statement: str) -> str:
    parts = [
        f"A power cut can leave {target.fstype} in a state that breaks this expectation ({finding.checker}):",
        statement,
        f"Found after recovery: {finding.message}.",
        *(_broken_rules(explanation) if finding.reference_name else _expected(target, finding)),
    ]
    return "\n\n".join(_wrapped(part, "  " if part is statement else "") for part in parts)


def _expected(target: Target, finding: Finding) -> Iterator[str]:
    """Yields which document or practice expects this of the file system."""
    statements = statements_of(target, finding.model, finding.checker)
    if statements.promise:
        yield f"It is promised: {statements.promise.cited}."
    else:
        yield f"The documentation does not promise it{f': {statements.denial.cited}' if statements.denial else ''}."
    practice = practice_of(target, finding.model, finding.checker)
    if practice is not None:
        yield f"File systems are held to it in practice: {practice.cited}."


def _broken_rules(explanation: Explanation) -> Iterator[str]:
    """Yields the rules that the state of a comparison's finding breaks."""
    if not explanation.objections:
        yield "Judges that know what documents promise and what fstests expects do not object to this state."
    for objection in explanation.objections:
        yield f"The state breaks a rule whatever it is compared with. {objection}."


def _other_kernels(results: Sequence[str]) -> Iterator[str]:
    """Yields the results of the script on other kernels, where other reasons may make it fail, such as the layout."""
    if results:
        note = "The script has the flushes and places on disk of the recording, which may be others on another kernel."
        yield "\n".join(
            ["Other kernels", "", *(_wrapped(line, "  - ", "    ") for line in results), "", _wrapped(note)]
        )


def _where(finding: Finding, target: Target) -> str:
    commands = {"mkfs": (*target.mkfs, "DISK"), "then": (*target.after_mkfs, "DISK") if target.after_mkfs else ()}
    facts = {
        **{name: _wrapped(fact, _MARGIN) for name, fact in _kernel(finding)},
        **{name: _command(words) for name, words in commands.items() if words},
        "Mount": _command(_mounting(target)),
        "Disk": _wrapped(f"{_disks(target)}; {DeviceModel(finding.model).prose}", _MARGIN),
        "Found by": _wrapped(f"postcrash, finding {finding.id}, crash state {finding.state}", _MARGIN),
    }
    return "\n".join(f"{name + ':':{len(_MARGIN)}}{fact.lstrip()}" for name, fact in facts.items())


def _kernel(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yields the kernel with its build, and where its configuration is, if these are known."""
    yield "Kernel", finding.kernel + (f" ({finding.built.description})" if finding.built is not None else "")
    if finding.built is not None and finding.built.configuration:
        yield "Config", f"SHA-256 {finding.built.configuration}; the archive of `postcrash bundle {finding.id}` has it"


def _mounting(target: Target) -> tuple[str, ...]:
    """Returns the command that mounts a disk."""
    if target.helper:
        return (*target.helper, "DISK", "/mnt", "-o", f"noatime,{target.options}".rstrip(","))
    return ("mount", "-t", target.fstype, *(["-o", target.options] if target.options else []), "DISK", "/mnt")


def _command(words: Iterable[str]) -> str:
    """A command for a shell, continued on other lines if it is long. The first line begins at the margin."""
    lines = [""]
    for word in map(shlex.quote, words):
        if lines[-1] and len(_MARGIN) + len(f"{lines[-1]} {word} \\") > WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return visible(f" \\\n{_MARGIN}".join(lines))


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
    note = [_wrapped(reference_note(explanation), "  ")] if explanation.reference else []
    if explanation.failure:
        return "\n\n".join(["Found", _wrapped(f"{explanation.failure}.", "  "), *note])
    differing = [comparison for comparison in explanation.comparison if comparison.differs]
    blocks = [_compared(comparison, explanation.reference) for comparison in differing]
    if not blocks and not explanation.reference:
        blocks = [_wrapped("Every name is as the operations leave it.", "  ")]
    return "\n\n".join(["Expected and found, where they differ", *blocks, *note])


def _compared(comparison: PathComparison, reference: str) -> str:
    sides = {"after the operations": comparison.allowed}
    if comparison.in_progress:
        sides = {"before the last one": comparison.allowed, "after the last one": comparison.in_progress}
    if comparison.reference:
        sides[f"on {reference}"] = comparison.reference
    lines = [f"  {visible(comparison.path)}"]
    for side, entry in {**sides, "found": comparison.found}.items():
        lines.append(_wrapped("; ".join(entry), f"    {visible(side) + ': ':22}", " " * 26))
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
