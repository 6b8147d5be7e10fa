"""The cause that findings of many workloads share: the checker, its message, and the kinds of writes that were lost."""

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
    """What findings of one group have in common.

    message  what the checker says, with N for each number and PATH for each name of the workload
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
    """The finding's cause. A lost write is named by its name if it has one, otherwise by its magic number."""
    lost = () if finding.explanation is None else finding.explanation.lost
    return Cause(finding.checker, general(finding.message, finding), tuple(sorted({_kind(each) for each in lost})))


def general(text: str, finding: Finding) -> str:
    """`text` without the names and numbers that differ from one workload to the next."""
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
