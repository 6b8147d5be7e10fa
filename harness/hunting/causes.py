"""The cause that findings of many workloads share: the checker, its message, and the kinds of writes that were lost."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from postcrash.harness.findings.known_findings import distinction
from postcrash.model import Operation, parse_workload
from postcrash.model.operation import FORMS
from postcrash.model.tree import ROOT_PATH
from postcrash.store.explanation_data import ExplainedWrite
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding

_NUMBER = re.compile(r"(?<![\w])[0-9]+")
_STATE = re.compile(r"\br-[0-9a-f]{16}/[0-9]+/(?:-|[0-9]+\.[0-9]+(?:,[0-9]+\.[0-9]+)*)")
_LAST_WORD = re.compile(r"([a-z-]+) $")
_NEXT_WORD = re.compile(r" ([a-z][a-z-]*)")
_BEHIND_A_NAME = frozenset(
    {
        *("after", "and", "are", "as", "at", "before", "by", "can", "cannot", "had", "has", "holds", "in", "is", "nor"),
        *("of", "or", "shows", "stands", "then", "there", "to", "was", "were", "with"),
    }
)
"""Words that follow a file's name in what checkers say. No noun is among them."""
FILE_DATA = "file data"


@dataclass(frozen=True, slots=True)
class Cause:
    """What findings of one group have in common.

    message      what the checker says, with N for each number and PATH for each name of the workload
    lost         the kinds of writes that the crash lost, sorted; empty if it lost none
    distinction  what tells it from known findings that show in the same words; empty if nothing has to
    """

    checker: str
    message: str
    lost: tuple[str, ...]
    distinction: str = ""

    def to_json(self) -> Json:
        """As decoded JSON."""
        return {
            "checker": self.checker,
            "message": self.message,
            "lost": list(self.lost),
            "distinction": self.distinction,
        }

    @staticmethod
    def from_json(obj: Json) -> "Cause":
        """What `to_json` gave."""
        return Cause(obj["checker"], obj["message"], tuple(obj["lost"]), obj["distinction"])


def cause_of(finding: Finding) -> Cause:
    """The finding's cause. A lost write is named by its name if it has one, otherwise by its magic number.

    A failure that cannot be the known one has a cause of its own, so that accepting the known one does not accept it.
    """
    lost = () if finding.explanation is None else finding.explanation.lost
    workload = parse_workload(finding.workload_text, finding.workload_name)
    message = _general(finding.message, workload.operations)
    words = (finding.checker, message, tuple(sorted({_kind(each) for each in lost})))
    return Cause(*words, distinction(finding.target, finding.model, words, workload))


def _general(text: str, operations: Iterable[Operation]) -> str:
    """`text` without the names and numbers that differ from one workload to the next."""
    parts, end = [], 0
    for match in names_in(text, operations):
        parts += [text[end : match.start()], "PATH"]
        end = match.end()
    return without_numbers("".join([*parts, text[end:]]))


def names_in(text: str, operations: Iterable[Operation]) -> list[re.Match[str]]:
    """Where `text` names files of the operations, or files in a folder that they name."""
    paths = {path for operation in operations for path in operation.paths if path != ROOT_PATH}
    if not paths:
        return []
    longest_first = sorted(paths, key=lambda path: (-len(path), path))
    found = re.finditer(rf"(?<![\w/.])(?:{'|'.join(map(re.escape, longest_first))})(?:/[\w.-]+)*(?![\w/])", text)
    return [match for match in found if not _is_article(text, match, paths)]


def _is_article(text: str, match: re.Match[str], paths: set[str]) -> bool:
    """Whether this is the word `a` of a sentence, and not the file of this name."""
    if match[0] != "a":
        return False
    before, after = _LAST_WORD.search(text[: match.start()]), _NEXT_WORD.match(text[match.end() :])
    if after is None or after[1] in paths or after[1] in _BEHIND_A_NAME:
        return False
    return before is None or before[1] not in FORMS


def without_numbers(text: str) -> str:
    """`text` with N for each number, and without the ids of crash states."""
    return _NUMBER.sub("N", _STATE.sub("a crash state", text))


def _kind(write: ExplainedWrite) -> str:
    return FILE_DATA if "`" in write.what else without_numbers(write.words)
