"""The advice of `postcrash needs --advise` as SARIF: each result is at the line of the source that it is about."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import postcrash
from postcrash.apps.needs import Advice, BadFolder
from postcrash.apps.protocol import Protocol, Step
from postcrash.harness.auditing.flush_runs import RunsWithout
from postcrash.harness.cli.programs.flush_runs_text import run_text
from postcrash.harness.cli.programs.needs_text import failure_lines, flush_text, missing_text
from postcrash.model import Verdict
from postcrash.model.text import one_line
from postcrash.reports.sarif import SarifResult, SourceLine, sarif_log

_MISSING, _NEEDLESS, _HOPELESS = "missing-flush", "needless-flush", "no-flush-mends"
_NEEDLESS_THERE = "needless-flush-on-target"
_DESCRIPTIONS = {
    _MISSING: "A flush is missing: without it, a power cut breaks a promise",
    _NEEDLESS: "A flush can go, together with the others of this kind: without them, no power cut breaks a promise",
    _NEEDLESS_THERE: "A run on the target without this flush alone broke no promise in any crash state",
    _HOPELESS: "A power cut breaks a promise, and no flush mends this",
}


@dataclass(frozen=True, slots=True)
class ApplicationAdvice:
    """The advice on an application, with the application's name, its protocol, and the runs without flushes."""

    name: str
    protocol: Protocol
    advice: Advice
    runs: RunsWithout | None = None


def advice_sarif(applications: Sequence[ApplicationAdvice]) -> str:
    """The log, with a line end. Paths of files below the current folder are relative to it."""
    return sarif_log(
        id=f"postcrash needs {','.join(application.name for application in applications)}",
        version=postcrash.__version__,
        results=[result for application in applications for result in _results(application)],
        descriptions=_DESCRIPTIONS,
        help_text="postcrash needs NAME --advise says it again, with the folders that were judged.",
    )


def _results(application: ApplicationAdvice) -> Iterator[SarifResult]:
    name, advice = application.name, application.advice
    for missing in advice.missing:
        text = f"missing: {missing_text(missing)}. Without it: {missing.failure.message}"
        yield _result(_MISSING, "error", text, name, missing.after)
    alone = application.runs.alone if application.runs else ()
    needed = {step.number for run in alone if run.verdict is Verdict.VIOLATED for step in run.flushes.values()}
    for flush in advice.flushes:
        if flush.can_go and flush.step.number not in needed:
            yield _result(_NEEDLESS, "note", flush_text(flush), name, flush.step)
    if isinstance(advice.result, BadFolder) and not advice.is_cut:
        failure = advice.result
        text = "; ".join([failure.message, *(line.strip() for line in failure_lines(application.protocol, failure))])
        lost = failure.state.lost
        number = lost[0].step if lost else failure.moment.number - 1
        yield _result(_HOPELESS, "error", text, name, application.protocol.steps[number])
    for run in alone:
        if run.verdict is Verdict.HOLDS:
            for step in run.flushes.values():
                yield _result(_NEEDLESS_THERE, "note", run_text(run), name, step)


def _result(rule: str, level: Literal["note", "error"], text: str, name: str, step: Step) -> SarifResult:
    """A result at the innermost line that is known of the step, with its whole stack."""
    about = f"{step.call} of {step.about}"
    stack = tuple(SourceLine(_path(frame.file), frame.line, frame.function) for frame in step.stack if frame.line)
    return SarifResult(
        rule=rule,
        level=level,
        text=one_line(text),
        fingerprint=(name, rule, about),
        source=stack[0] if stack else None,
        place=(step.call, f"{name}/call {step.number}: {about}"),
        stack=stack,
    )


def _path(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
