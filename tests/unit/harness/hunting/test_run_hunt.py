"""Each kind of selection is hunted through by its own hunt."""

from itertools import islice
from pathlib import Path

import pytest

from postcrash.harness.hunting import hunt as hunts
from postcrash.harness.hunting import random_hunt
from postcrash.harness.hunting.default_hunt import DefaultSelection, DefaultSpace
from postcrash.harness.hunting.list_hunt import ListSelection
from postcrash.harness.hunting.probes import Probe
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.run_hunt import AnySelection, run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import Verdict, parse_workload
from postcrash.store.store import Store
from postcrash.targets import target_named
from postcrash.workloads import GRAMMARS

from .pretence import CREW, SPACE, Pretence, Silent, clean, walks

MIXED = DefaultSpace(target_named("ext4-current"), [Probe.WALK])
LISTED = tuple(parse_workload(text, text) for text in ("creat a", "sync"))


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(SPACE, sample=2), {SPACE.whole(number).name for number in Selection(SPACE, sample=2).numbers()}),
        (DefaultSelection(MIXED, limit=2), {workload.name for _, workload in islice(MIXED.in_order(), 2)}),
        (RandomSelection(GRAMMARS["full"], 7, limit=2), {"random-7-0", "random-7-1"}),
        (ListSelection(LISTED), {workload.name for workload in LISTED}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_selected_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, selection: AnySelection, names: set[str]
) -> None:
    monkeypatch.setattr(random_hunt, "Recording", lambda path: path)
    monkeypatch.setattr(random_hunt, "features", lambda *_: set())
    monkeypatch.setattr(hunts, "examine_all", pretence := Pretence(clean))
    result = run_hunt(selection, walks(tmp_path), CREW, Store(tmp_path / "store"), Silent())
    assert set(pretence.ran) == names
    assert (result.run, result.verdict) == (2, Verdict.HOLDS)
