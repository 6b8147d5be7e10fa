"""Groups that come to one smallest workload are told as one, with all that was said of them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.hunting import groups as module
from postcrash.harness.hunting.causes import cause_of
from postcrash.harness.hunting.groups import summaries
from postcrash.harness.hunting.hunt_result import Group

from .pretence import found, plan

SHORT = "fsync a (operation 2) had returned, but a is 0 bytes long; it promised 4096"
BACK = "fsync . (operation 9) had returned after unlink a (operation 8), but a is there"


def test_a_summary_of_several_causes_says_all_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The smallest workload of a group may break the judge in other words than the group did."""
    short, back = (found(plan(tmp_path), message, "r-clean") for message in (SHORT, BACK))
    by_id = {each.id: each for each in (short, back)}
    monkeypatch.setattr(module, "named", lambda findings, store: list(findings))
    store: Any = SimpleNamespace(finding=by_id.__getitem__)
    least: Any = SimpleNamespace(finding=replace(short, id="f-least"), is_cut_short=False)
    causes = [Group(cause_of(each), each.id, (1, number), 1, ["w"]) for number, each in enumerate((short, back))]
    (summary,) = summaries(causes, store, lambda _: least)
    assert (summary.count, summary.shown.message) == (2, SHORT)
    assert summary.other_words == [cause_of(back).message]
    alone = summaries(causes[:1], store, lambda _: least)
    assert [each.other_words for each in alone] == [[]]
