"""New are kinds of requests of an operation and shapes of what was recovered. Names and numbers make nothing new."""

import struct
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.harness.examination.certificate import Certificate
from postcrash.harness.examination.result import Examination
from postcrash.harness.hunting.novelty import LOOSE, REQUESTS_MAX, features
from postcrash.model import Workload, parse_workload, pattern
from postcrash.reports.explanation.explanation import block_kind

from ..examination.conftest import RECOVER, interval_report

Event = tuple[Any, ...]
WORKLOAD = parse_workload("creat a\n---\nappend a 4096\nfsync a\nsync\n", "w")
SIZES = {"intervals 2^0", "outcomes 2^0", "states 2^0"}
OTHER = b"\x01" * 4096
SILENT: Any = SimpleNamespace(events=list)
"""A recording without an event."""


def commit(number: int) -> bytes:
    """A block that ends the transaction of this number in ext4's journal."""
    return struct.pack(">III", 0xC03B3998, 2, number).ljust(4096, b"\0")


def made_of(*writes: bytes | str, first: int = 0, **flags: bool) -> list[Event]:
    """Requests: writes of these bytes, and others by their names."""
    events: list[Event] = []
    for id, what in enumerate(writes, start=first):
        if isinstance(what, bytes):
            events.append(("write", id, 8 * id, what, flags.get("fua", False), flags.get("preflush", False)))
        else:
            events.append((what, id, *((8 * id, 8, True) if what == "zero" else ())))
    return events


def requests(folder: Path, events: Sequence[Event], workload: Workload = WORKLOAD) -> set[str]:
    write_recording(folder / "made.pcr", 4096, "{}", events)
    return features(Recording(folder / "made.pcr"), workload, Examination(), block_kind) - SIZES


def shapes(*observations: Any) -> set[str]:
    """The features of what was recovered."""
    result = Examination()
    result.certificates = [
        Certificate.of(interval_report(*(([[0, n]], shown) for n, shown in enumerate(observations))), RECOVER)
    ]
    return features(SILENT, WORKLOAD, result, block_kind) - SIZES


def test_each_operation_has_the_kinds_of_its_requests_and_the_operation_before_it(tmp_path: Path) -> None:
    data = pattern(WORKLOAD.operations[1].tag or 0, 0, 4096)
    events: list[Event] = [("started", 0), *made_of(data), ("returned", 0, 0), ("durable",)]
    events += [("started", 1), *made_of(data, data, OTHER, "flush", first=1), ("returned", 1, 0)]
    events += [("started", 2), *made_of(commit(7), first=5, fua=True, preflush=True), ("returned", 2, 0)]
    events += [("started", 3), *made_of("zero", first=6), ("returned", 3, 0)]
    assert requests(tmp_path, events) == {
        "creat append: data, metadata, flush",
        "append fsync: jbd2 commit block (transaction N) FUA PREFLUSH",
        "fsync sync: zero",
    }


def test_what_comes_after_an_operation_has_returned_is_still_its_own(tmp_path: Path) -> None:
    """Nobody else can have made it: the next operation has not started."""
    events: list[Event] = [("started", 0), ("returned", 0, 0), ("durable",), ("started", 1), ("returned", 1, 0)]
    assert requests(tmp_path, [*events, *made_of(OTHER)]) == {"creat append: metadata"}


def test_requests_before_the_first_operation_belong_to_none(tmp_path: Path) -> None:
    assert requests(tmp_path, [*made_of(OTHER), ("durable",)]) == set()
    alone = parse_workload("sync", "w")
    assert requests(tmp_path, [*made_of(OTHER), ("durable",), ("started", 0)], alone) == set()
    assert requests(tmp_path, [("durable",), ("started", 0), *made_of(OTHER)], alone) == {" sync: metadata"}


@pytest.mark.parametrize("kinds", [REQUESTS_MAX - 1, REQUESTS_MAX, REQUESTS_MAX + 3])
def test_of_many_requests_the_first_kinds_count(tmp_path: Path, kinds: int) -> None:
    mixed = [(OTHER, "flush")[number % 2] for number in range(kinds)]
    (told,) = requests(tmp_path, [("durable",), ("started", 0), ("returned", 0, 0), ("started", 1), *made_of(*mixed)])
    assert told.count("metadata") + told.count("flush") == min(kinds, REQUESTS_MAX)


def test_transactions_are_alike_whatever_their_numbers(tmp_path: Path) -> None:
    start: list[Event] = [("durable",), ("started", 0), ("returned", 0, 0), ("started", 1)]
    seven, eight = (requests(tmp_path, [*start, *made_of(commit(number))]) for number in (7, 8))
    assert seven == eight


def entry(path: str, *segments: Any, type: str = "file", size: int = 4096, **more: Any) -> dict[str, Any]:
    return {"path": path, "type": type, "nlink": 1, "inode": 1, "size": size, "segments": list(segments), **more}


def observed(*tree: dict[str, Any], klog: Sequence[str] = (), errno: int = 0) -> dict[str, Any]:
    return {"mount_errno": errno, "tree": list(tree), "klog": list(klog)}


def test_an_entry_has_a_shape_without_its_name_and_its_numbers() -> None:
    first = shapes(observed(entry("a", [0, 512, "write:3"], [512, 4096, "zero"], inode=7)))
    other = shapes(observed(entry("b", [0, 99, "write:5+512"], [99, 8192, "zero"], size=8192, inode=8)))
    assert first == other == {"mount 0", "file 1 True write zero"}


@pytest.mark.parametrize(
    ("changed", "shape"),
    [
        (entry("a", [0, 4096, "zero"]), "file 1 True zero"),
        (entry("a", [0, 100, "zero"], size=100), "file 1 False zero"),
        (entry("a", [0, 512, "zero"], size=512), "file 1 False zero"),
        (entry("a", [0, 4096, "zero"], nlink=2), "file 2 True zero"),
        (
            entry("a", [0, 1, "write:1"], [1, 2, "write:2"], [2, 3, "zero"], [3, 4, "write:1"]),
            "file 1 True write zero write",
        ),
        (entry("a", {"start": 0, "end": 4096, "component": 0, "versions": []}), f"file 1 True {LOOSE}"),
        (entry("a", [0, 1, "error:5"], size=1), "file 1 False error"),
        (entry("a", size=0), "file 1 True "),
        ({"path": ".", "type": "dir", "nlink": 3}, "dir 3 False "),
        ({"path": "a", "type": "file"}, "file None False "),
    ],
)
def test_type_links_whole_blocks_and_kinds_of_contents_make_a_shape(changed: dict[str, Any], shape: str) -> None:
    assert shapes(observed(changed)) == {"mount 0", shape}


def test_what_the_kernel_said_and_whether_it_mounted_are_features() -> None:
    told = shapes(observed(klog=["<4>block 17 is bad", "<4>block 18 is bad"]), observed(errno=117))
    assert told == {"mount 0", "mount 117", "<N>block N is bad"}


def test_a_lost_guest_and_a_recovery_that_looks_at_no_tree_have_features() -> None:
    assert shapes(None) == {"lost guest"}
    assert shapes({"mount_errno": 0, "tree": None, "klog": None}) == {"mount 0"}


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (2**70, 71)])
def test_of_counts_the_order_of_magnitude_is_a_feature(count: int, size: int) -> None:
    told = features(SILENT, WORKLOAD, Examination(intervals=1, outcomes=2, states=count), block_kind)
    assert told == {"intervals 2^1", "outcomes 2^2", f"states 2^{size}"}
