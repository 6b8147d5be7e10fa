"""Results as SARIF 2.1.0, which GitHub's code scanning and editors read.

In the log of a gate, rules are judges. Two more rules stand for undecided failures and for lines of the baseline that
are fixed. A result has a fingerprint of its section, target, device model and cause, so that it is the same one on the
next kernel.
"""

import hashlib
import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from postcrash.model.text import INVOCATION, one_line
from postcrash.properties import PROPERTIES
from postcrash.reports.gate.failure_text import story
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part
from postcrash.store.json_codec import Json

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_UNDECIDED, _FIXED_LINE = "undecided", "fixed"
_GATE_DESCRIPTIONS = {
    **{prop.name: prop.title for prop in PROPERTIES},
    _UNDECIDED: "What could not be decided",
    _FIXED_LINE: "Known failures that are not there any more",
}


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file in a function. The path is absolute, or relative to the folder of the log's reader."""

    file: str
    line: int
    function: str = ""

    def to_sarif(self) -> Json:
        scheme = "file://" if self.file.startswith("/") else ""
        return {"artifactLocation": {"uri": scheme + quote(self.file)}, "region": {"startLine": self.line}}


@dataclass(frozen=True, slots=True)
class SarifResult:
    """A result in a log.

    fingerprint  words by which the result is the same one in another log; the last one is postcrash's id of its cause
    source       where it is; None if no file is known
    place        where it is beside files: a name, and the qualified name
    stack        the calls that led to it, the innermost first
    properties   further properties of SARIF's result object
    """

    rule: str
    level: Literal["note", "warning", "error"]
    text: str
    fingerprint: tuple[str, ...]
    source: SourceLine | None = None
    place: tuple[str, str] | None = None
    stack: tuple[SourceLine, ...] = ()
    properties: Json = field(default_factory=dict)

    def to_sarif(self) -> Json:
        """GitHub compares `primaryLocationLineHash`, which has the form of a digest of a line with its number."""
        digest = hashlib.sha256(json.dumps(self.fingerprint).encode()).hexdigest()[:16]
        location: Json = {}
        if self.source is not None:
            location["physicalLocation"] = self.source.to_sarif()
        if self.place is not None:
            name, qualified = map(one_line, self.place)
            location["logicalLocations"] = [{"name": name, "fullyQualifiedName": qualified}]
        frames = [
            {"location": {"physicalLocation": frame.to_sarif(), "message": {"text": one_line(frame.function)}}}
            for frame in self.stack
        ]
        return {
            "ruleId": self.rule,
            "level": self.level,
            "message": {"text": self.text},
            "locations": [location],
            **({"stacks": [{"frames": frames}]} if frames else {}),
            "partialFingerprints": {
                "cause": one_line(self.fingerprint[-1]),
                "primaryLocationLineHash": f"{digest}:1",
            },
            **self.properties,
        }


def sarif_log(
    *,
    id: str,
    version: str,
    results: Sequence[SarifResult],
    descriptions: Mapping[str, str],
    help_text: str,
    properties: Json | None = None,
) -> str:
    """A log of one run of postcrash, with a line end.

    id            what was run: runs with the same one follow each other
    descriptions  of the rules, in a few words
    help_text     what can be done about a result
    """
    rules = []
    for name in sorted({result.rule for result in results}):
        text = {"text": descriptions.get(name, f"The judge {name} of postcrash")}
        rules.append({"id": name, "shortDescription": text, "fullDescription": text, "help": {"text": help_text}})
    run = {
        "tool": {"driver": {"name": "postcrash", "version": one_line(version), "rules": rules}},
        "automationDetails": {"id": f"{one_line(id)}/"},
        "columnKind": "unicodeCodePoints",
        "results": [result.to_sarif() for result in results],
        **({} if properties is None else {"properties": properties}),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def gate_sarif(run: GateRun, invocation: str = INVOCATION) -> str:
    """The log of a gate. Paths are relative to the folder from which the gate's file was named."""
    results = [_failure(run, part, failure, invocation) for part, failure in run.failures()]
    return sarif_log(
        id=f"postcrash gate {run.file}",
        version=run.version,
        results=[*results, *(_result_of_line(run, line) for line in run.fixed)],
        descriptions=_GATE_DESCRIPTIONS,
        help_text=f"{invocation} explain ID tells how a finding came about; {invocation} repro ID runs it again.",
        properties={"verdict": run.verdict.name.lower(), "counts": run.counts().model_dump(mode="json")},
    )


def _failure(run: GateRun, part: Part, failure: Failure, invocation: str) -> SarifResult:
    """Its place is the workload's file or, if it has none, the gate's."""
    properties: Json = {
        "baselineState": "new" if failure.is_new else "unchanged",
        "properties": {"target": part.target, "kernel": part.kernel, "model": part.model, "finding": failure.finding},
    }
    if not failure.is_new:
        why = one_line(failure.accepted_because)
        properties["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return SarifResult(
        rule=(one_line(failure.judge) or "judge") if failure.is_violated else _UNDECIDED,
        level="note" if not failure.is_new else "error" if failure.is_violated else "warning",
        text=story(failure, invocation),
        fingerprint=(part.name, part.target, part.model, failure.cause),
        source=SourceLine(_from_gate(run, failure.file) if failure.file else run.file, 1),
        place=(part.name, "/".join(part.key)),
        properties=properties,
    )


def _result_of_line(run: GateRun, line: FixedLine) -> SarifResult:
    return SarifResult(
        rule=_FIXED_LINE,
        level="note",
        text=f"not there any more: {one_line(line.cause)}, known: {one_line(line.why)}",
        fingerprint=(_FIXED_LINE, line.cause),
        source=SourceLine(_from_gate(run, run.baseline), line.line),
        properties={"baselineState": "absent"},
    )


def _from_gate(run: GateRun, name: str) -> str:
    """The path of a file whose `name` is relative to the folder of the gate's file."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(run.file), name))
