"""Every reader of what comes from elsewhere keeps its promise on damaged inputs, the same ones each time."""

from pathlib import Path

import pytest

from ...fuzz.child import seeds_of
from ...fuzz.run import fuzz
from ...fuzz.table import TARGETS
from ...fuzz.target import FuzzTarget
from ...fuzz.trial import input_of

pytestmark = pytest.mark.slow

INPUTS = 200


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_damaged_inputs_are_read_or_refused(target: FuzzTarget) -> None:
    run = fuzz(target, inputs=INPUTS, seed=7)
    assert run.fault is None, f"{run.fault} for {run.content[:300]!r}"


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_seeds_are_sound(target: FuzzTarget, tmp_path: Path) -> None:
    """Otherwise all that is made from them would be refused at once."""
    seeds = seeds_of(target, tmp_path)
    assert seeds
    file = input_of(target, tmp_path)
    file.parent.mkdir()
    for seed in seeds:
        file.write_bytes(target.repair(seed))
        target.read(file)
