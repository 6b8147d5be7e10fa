"""What judges that compare nothing say of a comparison's finding."""

from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.expectations.objections import objections
from postcrash.targets import target_named

ROOT = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}
LOST = {"mount_errno": 0, "tree": [ROOT], "klog": [], "fsck": None}
EXT4 = target_named("ext4-current")


def compared(text: str = "---\ncreat a\nfsync a\n", target: str = "ext4-current", **changes: Any) -> Any:
    """A finding of a comparison: after the last operation had returned, nothing is there."""
    count = len([line for line in text.splitlines() if line != "---"])
    about = {"workload_text": text, "workload_name": "w", "started": count, "returned": count, "model": "cache"}
    recovery = target_named(target).recovery(walk=True, fsck=False)
    told = {**about, "reference_name": "kernel:6.1", "observation": LOST, "recovery": recovery}
    return SimpleNamespace(**{**told, **changes})


def test_a_rule_of_practice_that_the_state_breaks_is_named() -> None:
    (objection,) = objections(compared(), EXT4)
    assert (objection.judge, objection.message) == (
        "fsync-names",
        "fsync a (operation 2) had returned, but a is missing",
    )
    assert objection.text.startswith(
        f"fsync-names: {objection.message}; broken in practice: fsync-keeps-names (fstests"
    )


def test_so_is_a_promise_of_documents() -> None:
    (objection, *_) = objections(compared("---\ncreat a\nsync\n"), EXT4)
    assert (objection.judge, objection.rule.partition(":")[0]) == ("durability", "broken")


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "---\ncreat a\n"},
        {"reference_name": ""},
        {"observation": None},
        {"observation": {"mount_errno": "?"}},
    ],
)
def test_where_no_rule_is_broken_or_nothing_was_compared_there_is_none(changes: dict[str, Any]) -> None:
    assert objections(compared(**changes), EXT4) == ()


def test_what_a_target_is_not_held_to_is_no_objection() -> None:
    assert objections(compared(target="ext2"), target_named("ext2")) == ()
