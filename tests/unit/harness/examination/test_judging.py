"""How often a judge is asked about an outcome whose contents are open."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.examination.judging import NOT_ALL_CHECKED, OpinionMemo, Opinions
from postcrash.harness.examination.result import Ruling
from postcrash.model import History, Observation, Verdict, parse_workload
from postcrash.model.content import sources
from postcrash.model.judge import Opinion

from .test_confirmation import WITNESS


class WhereZeros:
    """Objects in other words to zeros in a than to zeros in both b and c."""

    name = "zeros"
    version = ""
    depends_on = ("started", "returned")

    looks_at = ()

    def check(self, history: History, observation: Observation) -> Opinion:
        zeros = {path for path in "abc" if sources(observation.tree[path], 0, 4096) == {"zero"}}
        if "a" in zeros:
            return Opinion(Verdict.VIOLATED, True, "a is zero")
        if {"b", "c"} <= zeros:
            return Opinion(Verdict.VIOLATED, True, "b and c are zero")
        return Opinion(Verdict.HOLDS, True, "")


def open_file(path: str, number: int) -> dict[str, Any]:
    """A file that has its block or zeros."""
    versions = [[[0, 4096, f"write:{number}"]], [[0, 4096, "zero"]]]
    choice = {"start": 0, "end": 4096, "component": number, "versions": versions}
    about = {"path": path, "type": "file", "mode": 0o644, "nlink": 1, "inode": number + 2, "size": 4096}
    return {**about, "segments": [choice], "xattrs": {}}


ROOT = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 1, "xattrs": {}}
OPEN = {"mount_errno": 0, "tree": [ROOT, *(open_file(path, at) for at, path in enumerate("abc"))], "klog": []}


@pytest.mark.parametrize(
    ("messages_max", "found"), [(1, {"a is zero": (0,)}), (2, {"a is zero": (0,), "b and c are zero": (1, 2)})]
)
def test_other_words_are_found_although_they_take_more_losses(
    messages_max: int, found: dict[str, tuple[int, ...]]
) -> None:
    interval = SimpleNamespace(lost=lambda choices: [component for component, _ in choices], torn=lambda choices: 0)
    place: Any = SimpleNamespace(intervals=[interval], losses=lambda _: lambda component, version: int(version > 0))
    witness = replace(WITNESS, interval=0, choices=(), started=1, returned=1, lost=(), observation=OPEN)
    history, ruling = History(parse_workload("creat a\nsync", "zeros"), 1, 1), Ruling()
    Opinions(OpinionMemo(), messages_max).judge(WhereZeros(), history, witness, ruling, place)
    assert {message: each.lost for message, each in ruling.simplest_first()} == found


@pytest.mark.parametrize("is_told", [False, True])
def test_a_ruling_says_where_a_judge_was_not_asked_on(is_told: bool) -> None:
    interval = SimpleNamespace(lost=lambda choices: [component for component, _ in choices], torn=lambda choices: 0)
    place: Any = SimpleNamespace(intervals=[interval], losses=lambda _: lambda component, version: int(version > 0))
    witness = replace(WITNESS, interval=0, choices=(), started=1, returned=1, lost=(), observation=OPEN)
    history, ruling = History(parse_workload("creat a\nsync", "zeros"), 1, 1), Ruling()
    Opinions(OpinionMemo(), 1, notes_skipped=is_told).judge(WhereZeros(), history, witness, ruling, place)
    assert (ruling.verdict, ruling.unknown) == (Verdict.VIOLATED, [NOT_ALL_CHECKED] * is_told)
