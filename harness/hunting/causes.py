"""What findings of many workloads have in common: the checker, what it says, and what kind of writes were lost."""

import re
from dataclasses import dataclass

from postcrash.model import parse_workload
from postcrash.model.operation import HANDLE, PATHS
from postcrash.reports.store.explained import ExplainedWrite
from postcrash.reports.store.plain import Json
from postcrash.reports.store.records import Finding

_NUMBER = re.compile(r"(?<![\w])[0-9]+")
FILE_DATA = "file data"


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings that are alike in all of this are one group.

    message  with N for each number and PATH for each name of the workload
    lost     the kinds of writes that the crash lost, sorted; empty if it lost none
    """

    checker: str
    message: str
    lost: tuple[str, ...]

    def to_json(self) -> Json:
        """As decoded JSON."""
        return {"checker": self.checker, "message": self.message, "lost": list(self.lost)}

    @staticmethod
    def from_json(obj: Json) -> "Cause":
        """What `to_json` gave."""
        return Cause(obj["checker"], obj["message"], tuple(obj["lost"]))


def cause_of(finding: Finding) -> Cause:
    """The finding's cause. Lost writes go by their names if they have any, else by their magic numbers."""
    lost = () if finding.explanation is None else finding.explanation.lost
    return Cause(finding.checker, general(finding.message, finding), tuple(sorted({_kind(each) for each in lost})))


def general(text: str, finding: Finding) -> str:
    """`text` without what differs from one workload to the next."""
    workload = parse_workload(finding.workload_text, finding.workload_name)
    paths = {
        str(value).removeprefix(HANDLE)
        for operation in workload.operations
        for argument, value in operation.arguments
        if argument.kind in PATHS and value != "."
    }
    if paths:
        longest_first = sorted(paths, key=lambda path: (-len(path), path))
        any_path = "|".join(map(re.escape, longest_first))
        text = re.sub(rf"(?<![\w/.])(?:{any_path})(?![\w/])", "PATH", text)
    return without_numbers(text)


def without_numbers(text: str) -> str:
    """`text` with N for each number."""
    return _NUMBER.sub("N", text)


def _kind(write: ExplainedWrite) -> str:
    return FILE_DATA if "`" in write.what else without_numbers(write.words)
