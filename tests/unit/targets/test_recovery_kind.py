"""Kinds of recovery have the same form in the store as they always had."""

import json

import pytest

from postcrash.targets import TARGETS, RecoveryKind, Target

FIELDS = ["mount", "walk", "map", "use_after", "fsck"]


def reading(target: Target) -> RecoveryKind:
    """A recovery that reports the tree and reads every file through the guest's kernel."""
    return target.recovery(walk=True, fsck=False).by_kernel()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_kind_of_recovery_comes_back(target: Target) -> None:
    for kind in (target.recovery(walk=True, fsck=True, repair=True), reading(target)):
        text = json.dumps(kind.to_wire())
        more = ["repair"] * kind.is_repaired + ["aged"] * (target.aged_mib is not None)
        assert list(json.loads(text)) == FIELDS + more
        assert json.dumps(RecoveryKind.from_wire(json.loads(text)).to_wire()) == text
    assert not reading(target).map


@pytest.mark.parametrize("change", [{"walk": "maybe"}, {"more": 1}, {"fsck": None}])
def test_what_is_no_kind_of_recovery_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        RecoveryKind.from_wire({**reading(TARGETS[0]).to_wire(), **change})
