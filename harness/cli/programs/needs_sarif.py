"""The advice of `postcrash needs --advise` as SARIF: each result is at the line of the source that it is about."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import postcrash
from postcrash.apps.needs import Advice, BadFolder
from postcrash.apps.protocol import Protocol, Step
from postcrash.apps.protocol.trace import Frame
from postcrash.harness.auditing.flush_runs import RunsWithout
from postcrash.harness.cli.programs.flush_runs_text import run_text
from postcrash.harness.cli.programs.needs_text import failure_lines, flush_text, missing_text
from postcrash.model import Verdict
from postcrash.model.text import one_line
from postcrash.reports.sarif import fingerprints, logical, physical, sarif_log
from postcrash.store.json_codec import Json

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
    """An application by its name, what it did, the advice on it, and what runs without flushes came to."""

    name: str
    protocol: Protocol
    advice: Advice
    runs: RunsWithout | None = None


def advice_sarif(advised: Sequence[ApplicationAdvice]) -> str:
    """The log, with a line end. Files below the current folder are seen from there."""
    return sarif_log(
        id=f"postcrash needs {','.join(each.name for each in advised)}",
        version=postcrash.__version__,
        results=[result for each in advised for result in _results(each)],
        descriptions=_DESCRIPTIONS,
        told="postcrash needs NAME --advise says it again, with the folders that were judged.",
    )


def _results(advised: ApplicationAdvice) -> Iterator[Json]:
    name, advice = advised.name, advised.advice
    for missing in advice.missing:
        text = f"missing: {missing_text(missing)}. Without it: {missing.failure.message}"
        yield _result(_MISSING, "error", text, name, missing.after)
    alone = advised.runs.alone if advised.runs else ()
    needed = {step.number for run in alone if run.verdict is Verdict.VIOLATED for step in run.flushes.values()}
    for flush in advice.flushes:
        if flush.can_go and flush.step.number not in needed:
            yield _result(_NEEDLESS, "note", flush_text(flush), name, flush.step)
    if isinstance(advice.result, BadFolder) and not advice.is_cut:
        failure = advice.result
        text = "; ".join([failure.message, *(line.strip() for line in failure_lines(advised.protocol, failure))])
        lost = failure.state.lost
        yield _result(
            _HOPELESS, "error", text, name, advised.protocol.steps[lost[0].step if lost else failure.moment.number - 1]
        )
    for run in alone:
        if run.verdict is Verdict.HOLDS:
            for step in run.flushes.values():
                yield _result(_NEEDLESS_THERE, "note", run_text(run), name, step)


def _result(rule: str, level: str, message: str, name: str, step: Step) -> Json:
    """A result at the innermost line that is known of the step, with its whole stack."""
    lines = [frame for frame in step.stack if frame.line]
    place = logical(step.call, f"{name}/call {step.number}: {step.call} of {step.about}")
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": one_line(message)},
        "locations": [
            {**({"physicalLocation": _line_of(lines[0])} if lines else {}), "logicalLocations": [place]},
        ],
        **({"stacks": [{"frames": [_frame(frame) for frame in lines]}]} if lines else {}),
        "partialFingerprints": fingerprints(name, rule, f"{step.call} of {step.about}"),
    }


def _frame(frame: Frame) -> Json:
    return {"location": {"physicalLocation": _line_of(frame), "message": {"text": one_line(frame.function)}}}


def _line_of(frame: Frame) -> Json:
    below = os.path.relpath(frame.file)
    return physical(frame.file if below.startswith("..") else below, frame.line)
