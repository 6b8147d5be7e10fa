"""A gate's result as JSON lines: first the run, then a line for each part, each failure and each fixed line.

A line can be read without the others: a failure names its part. `type` says what a line is.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from postcrash.store.gate_run import Counts, Failure, FixedLine, GateRun, Part, PartHead, RunHead, Text, VerdictName


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
    yield _text(RunLine.model_validate({**head, "verdict": run.verdict.name.lower(), "counts": run.counts()}))
    for part in run.parts:
        yield from _part(part)
    for line in run.fixed:
        yield _text(FixedJsonLine.model_validate(dict(line)))


def line_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:postcrash:result-line"}
    return {**about, "title": "a line of a postcrash gate's result", **_line.json_schema(mode="serialization")}


def _part(part: Part) -> Iterator[str]:
    head = {name: getattr(part, name) for name in PartHead.model_fields}
    yield _text(PartLine.model_validate({**head, "gated": part.gated.name.lower()}))
    place = {"part": part.name, "target": part.target, "kernel": part.kernel, "model": part.model}
    for failure in part.failures:
        yield _text(FailureLine.model_validate({**dict(failure), **place}))


def _text(line: BaseModel) -> str:
    return line.model_dump_json()
