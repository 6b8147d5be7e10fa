"""Which probes the default hunt has, and what their plans say together."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import FSCK, WALK
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.hunting.probes import Probe, joined_plan, probe_of, probes_for
from postcrash.targets import Target, target_named

from .pretence import found, plan

EXT4, NILFS = target_named("ext4-current"), target_named("nilfs2")
PRACTICE = Expectation.named("practice")


@pytest.mark.parametrize(
    ("target", "depth", "kinds", "probes"),
    [
        (EXT4, 1, {WALK}, tuple(Probe)),
        (EXT4, 2, {WALK}, (Probe.WALK, Probe.FSCK)),
        (EXT4, 1, {WALK, FSCK}, (Probe.WALK, Probe.CRASH)),
        (NILFS, 1, {WALK}, (Probe.WALK, Probe.CRASH)),
    ],
)
def test_a_probe_that_shows_nothing_more_is_left_out(
    target: Target, depth: int, kinds: set[str], probes: tuple[Probe, ...]
) -> None:
    assert probes_for(PRACTICE, target, Exploration(depth=depth), frozenset(kinds)) == probes


def test_a_comparison_has_no_other_probe() -> None:
    assert probes_for(Expectation.named("kernel:6.1"), EXT4, Exploration()) == (Probe.WALK,)


def test_the_joined_plan_says_all_that_was_asked(tmp_path: Path) -> None:
    walk = plan(tmp_path)
    checked = replace(walk, recoveries=(EXT4.recovery(walk=False, fsck=True),))
    crashed = replace(walk, how=replace(walk.how, depth=2))
    joined = joined_plan({Probe.WALK: walk, Probe.FSCK: checked, Probe.CRASH: crashed})
    assert joined.how.depth == 2
    assert {bool(recovery.fsck) for recovery in joined.recoveries} == {False, True}


def test_a_finding_is_followed_up_as_it_was_found(tmp_path: Path) -> None:
    walked = found(plan(tmp_path), "it is gone", "r-0123456789abcdef")
    checked = replace(walked, recover=EXT4.recovery(walk=False, fsck=True).to_wire())
    within = replace(walked, base="r-0123456789abcdef/0/-")
    assert [probe_of(each) for each in (walked, checked, within)] == [Probe.WALK, Probe.FSCK, Probe.CRASH]
