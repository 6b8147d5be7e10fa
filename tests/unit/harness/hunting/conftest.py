"""Hunts on machines that only pretend."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.hunting import hunt as hunts
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.store.store import Store

from .pretence import CREW, SPACE, Behaviour, Pretence, Silent, walks


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[HuntResult, list[str]]]:
    """Run hunts with a behaviour, always in the same store. Gives the result and the workloads that were run for it."""

    def hunted(behaviour: Behaviour, relevant: bool = True, **selected: Any) -> tuple[HuntResult, list[str]]:
        pretence = Pretence(behaviour)
        pretence.relevant = relevant
        monkeypatch.setattr(hunts, "examine_all", pretence)
        store = Store(tmp_path / "store")
        selection = Selection(SPACE, **selected)
        result = run_hunt(selection, walks(tmp_path), CREW, store, Silent())
        store.close()
        return result, pretence.ran

    return hunted
