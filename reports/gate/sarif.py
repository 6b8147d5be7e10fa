"""A gate's result as SARIF 2.1.0, which GitHub's code scanning and editors read.

Rules are judges. Two more rules stand for what is undecided and for lines of the baseline that are fixed. A result has
a fingerprint of its section, target, device model and cause, so that it is the same one on the next kernel.
"""

import posixpath

from postcrash.model.text import INVOCATION, one_line
from postcrash.properties import PROPERTIES
from postcrash.reports.gate.failure_text import story
from postcrash.reports.sarif import fingerprints, logical, physical, sarif_log
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part
from postcrash.store.json_codec import Json

_UNDECIDED, _FIXED = "undecided", "fixed"
_DESCRIPTIONS = {
    **{prop.name: prop.title for prop in PROPERTIES},
    _UNDECIDED: "What could not be decided",
    _FIXED: "Known failures that are not there any more",
}


def sarif(run: GateRun, invocation: str = INVOCATION) -> str:
    """The log, with a line end. Places of files are seen from the folder from which the gate's file was named."""
    results = [_failure(run, part, failure, invocation) for part, failure in run.failures()]
    results += [_fixed(run, line) for line in run.fixed]
    return sarif_log(
        id=f"postcrash gate {run.file}",
        version=run.version,
        results=results,
        descriptions=_DESCRIPTIONS,
        told=f"{invocation} explain ID tells how a finding came about; {invocation} repro ID runs it again.",
        properties={"verdict": run.verdict.name.lower(), "counts": run.counts().model_dump(mode="json")},
    )


def _failure(run: GateRun, part: Part, failure: Failure, invocation: str) -> Json:
    level = "note" if not failure.is_new else "error" if failure.is_violated else "warning"
    result = {
        "ruleId": (one_line(failure.judge) or "judge") if failure.is_violated else _UNDECIDED,
        "level": level,
        "message": {"text": story(failure, invocation)},
        "locations": [_location(run, part, failure)],
        "partialFingerprints": fingerprints(part.name, part.target, part.model, failure.cause),
        "baselineState": "new" if failure.is_new else "unchanged",
        "properties": {"target": part.target, "kernel": part.kernel, "model": part.model, "finding": failure.finding},
    }
    if not failure.is_new:
        why = one_line(failure.accepted_because)
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _location(run: GateRun, part: Part, failure: Failure) -> Json:
    """The workload's file or, if it has none, the gate's; and the part, which is no place in a file."""
    file = _beside(run, failure.file) if failure.file else run.file
    return {"physicalLocation": physical(file, 1), "logicalLocations": [logical(part.name, "/".join(part.key))]}


def _fixed(run: GateRun, line: FixedLine) -> Json:
    return {
        "ruleId": _FIXED,
        "level": "note",
        "message": {"text": f"not there any more: {one_line(line.cause)}, known: {one_line(line.why)}"},
        "locations": [{"physicalLocation": physical(_beside(run, run.baseline), line.line)}],
        "partialFingerprints": fingerprints(_FIXED, line.cause),
        "baselineState": "absent",
    }


def _beside(run: GateRun, name: str) -> str:
    """The path of what is named as seen from the folder of the gate's file."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(run.file), name))
