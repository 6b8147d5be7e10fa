"""The agent's report before it is judged: choices are settled, and what may differ is left out."""

import json
from dataclasses import replace
from typing import Any

import pytest

from postcrash.model import Observation
from postcrash.model.wire_observation import (
    comparable,
    is_mounted,
    open_components,
    report_of_tree,
    settled,
    settled_below,
    with_tree,
)

LEVEL = 1 << 31


def choice(component: int) -> dict[str, Any]:
    """The byte at 1, which is 0 or 255."""
    versions = [[[1, 2, "bytes:00"]], [[1, 2, "bytes:ff"]]]
    return {"start": 1, "end": 2, "component": component, "versions": versions}


def report(*segments: Any) -> dict[str, Any]:
    """A tree with a folder and one file."""
    return {"mount_errno": 0, "tree": [{"path": "."}, {"path": "f", "segments": list(segments)}]}


def shown(*lines: str, whole: bool, size: int = 1) -> dict[str, Any]:
    tree = [{"path": "a", "size": size, "hash": str(lines)}]
    return {"mount_errno": 0, "tree": tree, "klog": list(lines), "klog_whole": whole}


def test_a_prediction_joins_bytes_as_the_kernel_reads_them() -> None:
    choice = {"start": 1, "end": 2, "component": 0, "versions": [[[1, 2, "bytes:00"]], [[1, 2, "bytes:ff"]]]}
    tree = [{"path": "f", "segments": [[0, 1, "bytes:00"], choice, [2, 3, "bytes:11"]]}]
    assert settled({"tree": tree}, {0: 1})["tree"][0]["segments"] == [[0, 3, "bytes:00ff11"]]
    assert settled({"tree": tree}, {0: 0})["tree"][0]["segments"] == [[0, 3, "bytes:000011"]]


def test_what_is_not_a_byte_is_joined_with_its_like() -> None:
    joined = settled(report([0, 1, "zero"], [1, 2, "zero"], [2, 3, "stale"], [3, 4, "bytes:00"]), {})
    assert joined == report([0, 2, "zero"], [2, 3, "stale"], [3, 4, "bytes:00"])


def test_a_crash_within_recovery_settles_some_and_leaves_others_open_below_it() -> None:
    below = settled_below(report([0, 1, "zero"], choice(3)), {7: 0}, LEVEL)
    assert below == report([0, 1, "zero"], choice(3 | LEVEL))
    assert settled_below(report([0, 1, "zero"], choice(3)), {3: 1}, LEVEL) == report([0, 1, "zero"], [1, 2, "bytes:ff"])


def test_contents_do_not_depend_on_how_they_are_cut() -> None:
    """A second recovery tells the same bytes in one piece."""
    below = settled_below(report([0, 1, "bytes:aa"], choice(3), [2, 3, "bytes:11"], choice(4)), {3: 0}, LEVEL)
    assert below == report([0, 3, "bytes:aa0011"], choice(4 | LEVEL))


@pytest.mark.parametrize(
    ("known", "mounted", "left_open"),
    [
        (None, False, {}),
        ({"mount_errno": 5, "tree": None}, False, {}),
        ({"mount_errno": 0, "tree": None}, True, {}),
        (report([0, 1, "zero"], choice(3)), True, {3: 2}),
    ],
)
def test_what_is_asked_of_a_report(known: Any, mounted: bool, left_open: dict[int, int]) -> None:
    assert is_mounted(known) == mounted
    assert open_components(known) == left_open


@pytest.mark.parametrize("known", [None, {"mount_errno": 5, "tree": None}])
def test_without_a_tree_nothing_changes(known: Any) -> None:
    assert settled(known, {}) == settled_below(known, {}, LEVEL) == with_tree(known, reversed) == known  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("predicted", "observed", "same"),
    [
        (shown("<4>a", whole=True), shown("<4>a", whole=True), True),
        (shown("<4>a", whole=True), shown(whole=True), False),
        (shown("<4>a", whole=True), shown(whole=False), True),
        (shown(whole=False), shown("<4>a", whole=True), True),
        (shown(whole=False), shown(whole=True, size=2), False),
        (shown(whole=True), None, False),
        ({**shown(whole=True), "tree": None}, {**shown(whole=True), "tree": None}, True),
    ],
)
def test_logs_are_compared_where_both_are_whole(predicted: Any, observed: Any, same: bool) -> None:
    first, second = comparable(predicted, observed)
    assert (first == second) is same


def test_a_tree_is_told_so_that_it_can_be_read_again() -> None:
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 3, "inode": 0, "size": 0}
    file = {**root, "path": "f", "type": "file", "mode": 0o600, "nlink": 2, "inode": 1, "size": 3}
    entries = [
        root,
        {**file, "segments": [[0, 1, "write:3"], choice(7), [2, 3, "other"]], "hash": "0123456789abcdef"},
        {**file, "path": "g", "segments": [[0, 3, "zero"]], "xattrs": {"user.x": "00"}},
        {**root, "path": "l", "type": "symlink", "target": "f"},
        {**root, "path": "n", "type": "fifo"},
        {"path": "u", "type": "file", "error": 117},
    ]
    mounted = Observation.from_wire({"mount_errno": 0, "tree": entries, "klog": ["<4>odd"], "aged": "gone"})
    told = report_of_tree(mounted)
    assert Observation.from_wire(json.loads(json.dumps(told))) == replace(mounted, klog=())
    failed = Observation.from_wire({"mount_errno": 5, "tree": [], "klog": []})
    assert Observation.from_wire(report_of_tree(failed)) == failed
