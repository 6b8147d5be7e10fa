"""Workloads of a list have first looks like those of a space, unless each is to be explored to its end at once."""

from pathlib import Path

import pytest

from postcrash.harness.hunting import hunt as hunts
from postcrash.harness.hunting.first_looks import FIRST_LOOK
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.model import Verdict, parse_workload
from postcrash.store.store import Store

from .pretence import CREW, Pretence, Silent, clean, walks

WORKLOADS = tuple(parse_workload(text, text) for text in ("creat a", "sync"))


@pytest.mark.parametrize(("one_look", "looks"), [(False, [FIRST_LOOK, FIRST_LOOK, None, None]), (True, [None, None])])
def test_a_workload_of_a_list_has_a_first_look_unless_there_is_to_be_one_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_look: bool, looks: list[int | None]
) -> None:
    monkeypatch.setattr(hunts, "examine_all", pretence := Pretence(clean))
    pretence.states = lambda _: 1000
    selection = ListSelection(WORKLOADS, one_look=one_look)
    result = run_hunt(selection, walks(tmp_path), CREW, Store(tmp_path / "store"), Silent())
    assert (pretence.looks, result.verdict, result.run) == (looks, Verdict.HOLDS, 2)
