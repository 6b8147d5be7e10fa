"""A gate's result as SARIF 2.1.0, which GitHub's code scanning and editors read.

Rules are judges. Two more rules stand for what is undecided and for lines of the baseline that are fixed. A result has
a fingerprint of its section, target, device model and cause, so that it is the same one on the next kernel.
"""

import hashlib
import json
import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from postcrash.properties import PROPERTIES
from postcrash.reports.gate.failure_text import story
from postcrash.reports.gate.run import Failure, FixedLine, GateRun, Part
from postcrash.reports.text import one_line

Json = dict[str, Any]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_UNDECIDED, _FIXED = "undecided", "fixed"
_DESCRIPTIONS = {
    **{prop.name: prop.title for prop in PROPERTIES},
    _UNDECIDED: "What could not be decided",
    _FIXED: "Known failures that are not there any more",
}


def sarif(run: GateRun) -> str:
    """The log, with a line end. Places of files are seen from the folder from which the gate's file was named."""
    results = [_failure(run, part, failure) for part, failure in run.failures()]
    results += [_fixed(run, line) for line in run.fixed]
    driver = {"name": "postcrash", "version": one_line(run.version), "rules": list(_rules(results))}
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "automationDetails": {"id": f"postcrash gate {one_line(run.file)}/"},
                "columnKind": "unicodeCodePoints",
                "results": results,
                "properties": {"verdict": run.verdict.name.lower(), "counts": run.counts().model_dump(mode="json")},
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rules(results: list[Json]) -> Iterator[Json]:
    for name in sorted({result["ruleId"] for result in results}):
        text = {"text": _DESCRIPTIONS.get(name, f"The judge {name} of postcrash")}
        told = {"text": "postcrash explain ID tells how a finding came about; postcrash repro ID runs it again."}
        yield {"id": name, "shortDescription": text, "fullDescription": text, "help": told}


def _failure(run: GateRun, part: Part, failure: Failure) -> Json:
    level = "note" if not failure.is_new else "error" if failure.is_violated else "warning"
    result = {
        "ruleId": (one_line(failure.judge) or "judge") if failure.is_violated else _UNDECIDED,
        "level": level,
        "message": {"text": story(failure)},
        "locations": [_location(run, part, failure)],
        "partialFingerprints": _fingerprints(part.name, part.target, part.model, failure.cause),
        "baselineState": "new" if failure.is_new else "unchanged",
        "properties": {"target": part.target, "kernel": part.kernel, "model": part.model, "finding": failure.finding},
    }
    if failure.known is not None:
        why = one_line(failure.known)
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _location(run: GateRun, part: Part, failure: Failure) -> Json:
    """The workload's file or, if it has none, the gate's; and the part, which is no place in a file."""
    file = _beside(run, failure.file) if failure.file else run.file
    logical = {"name": one_line(part.name), "fullyQualifiedName": one_line("/".join(part.place))}
    return {"physicalLocation": _physical(file, 1), "logicalLocations": [logical]}


def _fixed(run: GateRun, line: FixedLine) -> Json:
    return {
        "ruleId": _FIXED,
        "level": "note",
        "message": {"text": f"not there any more: {one_line(line.cause)}, known: {one_line(line.why)}"},
        "locations": [{"physicalLocation": _physical(_beside(run, run.baseline), line.line)}],
        "partialFingerprints": _fingerprints(_FIXED, line.cause),
        "baselineState": "absent",
    }


def _beside(run: GateRun, name: str) -> str:
    """The path of what is named as seen from the folder of the gate's file."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(run.file), name))


def _physical(file: str, line: int) -> Json:
    scheme = "file://" if file.startswith("/") else ""
    return {"artifactLocation": {"uri": scheme + quote(file)}, "region": {"startLine": line}}


def _fingerprints(*words: str) -> dict[str, str]:
    """`cause` is postcrash's own. GitHub compares the other one, whose form is a digest of a line with its number."""
    digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]
    return {"cause": one_line(words[-1]), "primaryLocationLineHash": f"{digest}:1"}
