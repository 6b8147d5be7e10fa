"""A report is taken over exactly, or it is refused with the place of the mistake."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import Entry, FsckResult, Observation, ObservationError, Segment, Tree

from ..conftest import places

ROOT: dict[str, Any] = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 3, "inode": 1}
FILE: dict[str, Any] = {
    "path": "A/foo",
    "type": "file",
    "mode": 420,
    "nlink": 1,
    "inode": 3,
    "size": 8192,
    "segments": [[0, 4096, "write:7"], [4096, 6000, "zero"], [6000, 8192, "zero"]],
    "hash": "89abcdef01234567",
    "xattrs": {"user.b": "", "user.a": "00ff"},
}
LINK: dict[str, Any] = {"path": "s", "type": "symlink", "mode": 0o777, "nlink": 1, "inode": 4, "target": "../x"}
GOOD: dict[str, Any] = {
    "mount_errno": 0,
    "tree": [ROOT, {**ROOT, "path": "A", "inode": 2, "xattrs": {}}, FILE, LINK],
    "klog": ["<4>EXT4-fs warning"],
    "fsck": {"status": 1, "output": "fixed"},
}


def test_a_good_report() -> None:
    segments = (Segment(0, 4096, "write:7"), Segment(4096, 8192, "zero"))
    xattrs = (("user.a", "00ff"), ("user.b", ""))
    expected = [
        Entry(".", "dir", 0o755, 3, 1),
        Entry("A", "dir", 0o755, 3, 2),
        Entry("A/foo", "file", 0o644, 1, inode=3, size=8192, segments=segments, xattrs=xattrs, hash="89abcdef01234567"),
        Entry("s", "symlink", 0o777, 1, 4, target="../x"),
    ]
    assert Observation.from_wire(GOOD) == Observation(
        0, Tree(expected), ("<4>EXT4-fs warning",), FsckResult(1, "fixed")
    )


def test_a_failed_mount() -> None:
    report = {"mount_errno": 117, "tree": [], "klog": [], "fsck": None}
    assert Observation.from_wire(report) == Observation(117, Tree())


def test_an_unreadable_entry_may_lack_all_but_name_and_type() -> None:
    report = {**GOOD, "tree": [ROOT, {"path": "f", "type": "file", "error": 5}]}
    assert Observation.from_wire(report).tree["f"] == Entry("f", "file", error=5)


def test_an_unreadable_file_may_be_covered_in_part() -> None:
    report = {**GOOD, "tree": [ROOT, {**FILE, "path": "f", "error": 27, "segments": [[4096, 8192, "error:5"]]}]}
    assert Observation.from_wire(report).tree["f"].segments == (Segment(4096, 8192, "error:5"),)


def entry(**changes: object) -> Callable[[dict[str, Any]], None]:
    return lambda report: report["tree"][2].update(changes)


def top(**changes: object) -> Callable[[dict[str, Any]], None]:
    return lambda report: report.update(changes)


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda report: report["tree"][2].pop(key)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (top(mount_errno=None), "mount_errno"),
        (top(mount_errno=False), "mount_errno"),
        (top(mount_errno=-1), "mount_errno"),
        (top(mount_errno=5), "tree"),
        (top(tree=[]), "tree"),
        (top(tree={}), "tree"),
        (top(tree=[ROOT] * 100_001), "tree"),
        (top(tree=[ROOT, ROOT]), "tree[1].path"),
        (top(tree=[ROOT, 5]), "tree[1]"),
        (top(tree=[ROOT, FILE]), "tree[1].path"),
        (top(tree=[ROOT, LINK, {**FILE, "path": "s/a"}]), "tree[2].path"),
        (top(klog=None), "klog"),
        (top(klog_whole=None), "klog_whole"),
        (top(unlisted=None), "unlisted"),
        (top(unlisted=["a"] * 11), "unlisted"),
        (top(unlisted=["a", 1]), "unlisted[1]"),
        (top(aged=None), "aged"),
        (top(helper=None), "helper"),
        (top(klog_whole=1), "klog_whole"),
        (top(klog=[5]), "klog[0]"),
        (top(fsck=1), "fsck"),
        (top(fsck={"status": 256, "output": ""}), "fsck.status"),
        (top(fsck={"status": 0}), "fsck.output"),
        (top(extra=1), "observation"),
        (entry(extra=1), "tree[2]"),
        (entry(path="/a"), "tree[2].path"),
        (entry(path="A/../b"), "tree[2].path"),
        (entry(path="A//b"), "tree[2].path"),
        (entry(path=""), "tree[2].path"),
        (entry(path="x" * 70_000), "tree[2].path"),
        (entry(type="pipe"), "tree[2].type"),
        (entry(type=[]), "tree[2].type"),
        (without("mode"), "tree[2].mode"),
        (entry(mode=0o100644), "tree[2].mode"),
        (without("nlink"), "tree[2].nlink"),
        (without("inode"), "tree[2].inode"),
        (entry(inode=1.0), "tree[2].inode"),
        (without("size"), "tree[2].size"),
        (entry(size=-1), "tree[2].size"),
        (entry(size=2**63), "tree[2].size"),
        (without("segments"), "tree[2].segments"),
        (entry(segments=[]), "tree[2].segments"),
        (entry(segments=[[0, 4096, "zero"]]), "tree[2].segments"),
        (entry(segments=[[0, 9000, "zero"]]), "tree[2].segments"),
        (entry(segments=[[1, 8192, "zero"]]), "tree[2].segments"),
        (entry(segments=[[0, 10, "zero"], [20, 8192, "zero"]]), "tree[2].segments"),
        (entry(segments=[[0, 10, "zero"], [5, 8192, "zero"]]), "tree[2].segments[1][0]"),
        (entry(segments=[[0, 0, "zero"]]), "tree[2].segments[0][1]"),
        (entry(segments=[[0, 8192]]), "tree[2].segments[0]"),
        (entry(segments=[[0, 8192, "write:255"]]), "tree[2].segments[0][2]"),
        (entry(segments=[[0, 8192, "write:07"]]), "tree[2].segments[0][2]"),
        (entry(segments=[[0, 8192, "write:255+4096"]]), "tree[2].segments[0][2]"),
        (entry(segments=[[0, 8192, "write:7+0"]]), "tree[2].segments[0][2]"),
        (entry(segments=[[0, 8192, "ones"]]), "tree[2].segments[0][2]"),
        (entry(segments=[[0, 8192, "zero\n"]]), "tree[2].segments[0][2]"),
        (entry(hash="x"), "tree[2].hash"),
        (entry(xattrs={"a": "0"}), "tree[2].xattrs['a']"),
        (entry(xattrs={"a" * 256: "00"}), "tree[2].xattrs"),
        (entry(xattrs=[]), "tree[2].xattrs"),
        (entry(type="symlink"), "tree[2].target"),
        (entry(error="EIO"), "tree[2].error"),
    ],
)
def test_bad_reports(change: Callable[[dict[str, Any]], None], place: str) -> None:
    report = copy.deepcopy(GOOD)
    change(report)
    with pytest.raises(ObservationError) as caught:
        Observation.from_wire(report)
    assert caught.value.place == place
    assert str(caught.value).startswith(f"{place}: expected ")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", ".", "a", "file", "zero"])
KEYS = st.sampled_from(["mount_errno", "tree", "klog", "fsck", "path", "type", "size", "segments"]) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)


def check_taken_or_refused(obj: object) -> None:
    """Only `ObservationError` may be raised."""
    try:
        assert isinstance(Observation.from_wire(obj), Observation)
    except ObservationError as error:
        message = str(error)
    else:
        return
    assert ": expected " in message


@given(JSON)
def test_any_json_is_an_observation_or_an_error(obj: object) -> None:
    check_taken_or_refused(obj)


@given(st.sampled_from(places(GOOD)[1:]), JSON)
def test_a_good_report_with_one_thing_replaced(place: tuple[Any, ...], obj: object) -> None:
    report = copy.deepcopy(GOOD)
    holder: Any = report
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = obj
    check_taken_or_refused(report)
