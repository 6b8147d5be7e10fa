"""A gate's result as JSON lines: first the run, then a line for each part, each failure and each fixed line.

A line can be read without the others: a failure names its part. `type` says what a line is.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from postcrash.store.gate_run import Counts, Failure, FixedLine, GateRun, PartHead, RunHead, Text, VerdictName


class RunLine(RunHead):
    """The first line. `verdict` is the gate's: without what the baseline accepts."""

    type: Literal["run"] = "run"
    verdict: VerdictName
    counts: Counts


class PartLine(PartHead):
    """A part. `verdict` is on all that was run, `gated` without what the baseline accepts."""

    type: Literal["part"] = "part"
    gated: VerdictName


class FailureLine(Failure):
    """A failure of the part with the name `part`. `name` is the workload's."""

    type: Literal["failure"] = "failure"
    part: Text
    target: Text
    kernel: Text
    model: Text


class FixedJsonLine(FixedLine):
    """A line of the baseline whose failure was not there any more."""

    type: Literal["fixed"] = "fixed"


_line: TypeAdapter[RunLine | PartLine | FailureLine | FixedJsonLine] = TypeAdapter(
    Annotated[RunLine | PartLine | FailureLine | FixedJsonLine, Field(discriminator="type")]
)


def json_lines(run: GateRun) -> Iterator[str]:
    """The lines, without their ends."""
    head = {name: getattr(run, name) for name in RunHead.model_fields}
    head |= {"verdict": run.verdict.name.lower(), "counts": run.counts()}
    yield RunLine.model_validate(head).model_dump_json()
    for part in run.parts:
        head = {name: getattr(part, name) for name in PartHead.model_fields}
        yield PartLine.model_validate({**head, "gated": part.gate_verdict.name.lower()}).model_dump_json()
        place = {"part": part.name, "target": part.target, "kernel": part.kernel, "model": part.model}
        for failure in part.failures:
            yield FailureLine.model_validate({**dict(failure), **place}).model_dump_json()
    for line in run.fixed:
        yield FixedJsonLine.model_validate(dict(line)).model_dump_json()


def line_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:postcrash:result-line"}
    return {**head, "title": "a line of a postcrash gate's result", **_line.json_schema(mode="serialization")}
