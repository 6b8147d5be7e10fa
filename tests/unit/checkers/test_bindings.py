"""What names can stand for after a crash is what the latest barrier of their directory left open."""

import pytest

from postcrash.checkers.bindings import Bindings, bindings_of
from postcrash.checkers.links import Link
from postcrash.model import History, Persistence, Workload, parse_workload
from postcrash.model.simulate import ROOT_INODE


def workload_of(operations: str) -> Workload:
    return parse_workload(operations.replace("; ", "\n"), "case")


def bound(operations: str, *, is_last_running: bool = False) -> Bindings:
    """After all operations, which had all returned unless the last one is running. Operation k makes inode k + 1."""
    workload = workload_of(operations)
    count = len(workload.operations)
    return Bindings(History(workload, count, count - is_last_running))


def at(name: str, directory: int = ROOT_INODE) -> Link:
    return Link(directory, name)


def test_barriers_are_the_set_up_and_what_returned_and_promises_something() -> None:
    found = bound("creat a; ---; writeback a; commit; checkpoint; fsync a; sync; fdatasync a; syncfs")
    assert [(barrier.count, barrier.inode) for barrier in found.barriers] == [
        (1, None),
        (5, 2),
        (6, None),
        (7, 2),
        (8, None),
    ]
    assert [found.describe(barrier) for barrier in found.barriers[:2]] == [
        "the set-up was durable",
        "fsync a (operation 5) had returned",
    ]
    assert found.barriers[0].persistence is Persistence.EVERYTHING


def test_an_fsync_that_is_running_is_no_barrier() -> None:
    assert [barrier.count for barrier in bound("creat a; fsync a", is_last_running=True).barriers] == [0]


def test_a_persistence_operation_of_the_set_up_is_no_barrier_of_its_own() -> None:
    assert [barrier.count for barrier in bound("creat a; sync; ---; creat b").barriers] == [2]


def test_nothing_is_durable_before_recording_began() -> None:
    """The set-up is durable as a whole, and before its end nothing of it is."""
    workload = workload_of("creat a; sync; ---; creat b")
    assert Bindings(History(workload, 2, 1)).barriers == ()
    assert [barrier.count for barrier in Bindings(History(workload, 2, 2)).barriers] == [2]


def test_an_fsync_through_a_handle_is_of_the_file_whatever_has_its_name_then() -> None:
    found = bound("creat a; open a; unlink a; creat a; fsync @a")
    assert [(barrier.count, barrier.inode) for barrier in found.barriers] == [(0, None), (5, 2)]


def test_fsyncs_are_those_of_files_and_directories_and_writes_with_o_sync() -> None:
    found = bound(
        "mkdir D; creat a; fsync D; fsync a; fdatasync a; write-osync a 0 512; write-odsync a 0 512; "
        "dwrite-osync a 0 512; mmapwrite a 0 512; msync a; sync; fsync ."
    )
    assert [(barrier.count, inode) for barrier, inode in found.fsyncs()] == [(3, 2), (4, 3), (6, 3), (8, 3), (12, 1)]


def test_an_fsync_of_a_directory_settles_its_own_entries_alone() -> None:
    found = bound("mkdir D; mkdir E; creat D/a; creat E/a; fsync D; fdatasync E; creat f; fsync f")
    assert [[barrier.count for barrier in found.settling(inode)] for inode in (2, 3, ROOT_INODE)] == [[0, 5], [0], [0]]
    assert found.stands_for(at("a", 2)) == {4}
    assert found.stands_for(at("a", 3)) == {None, 5}
    assert found.stands_for(at("D")) == {None, 2}


def test_an_fdatasync_of_a_directory_settles_nothing_behind_an_fsync_of_it() -> None:
    found = bound("mkdir D; fsync D; creat D/a; fdatasync D")
    assert [barrier.count for barrier in found.settling(2)] == [0, 2]
    assert found.stands_for(at("a", 2)) == {None, 4}


SYNCED = "creat a; creat b; sync; rename b a; creat b"


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("creat a; creat b; rename b a; creat b", {"a": {None, 2, 3}, "b": {None, 3, 5}}),
        (SYNCED, {"a": {2, 3}, "b": {3, None, 6}}),
        (f"{SYNCED}; fsync .", {"a": {3}, "b": {6}}),
        (f"{SYNCED}; fsync .; unlink a", {"a": {3, None}, "b": {6}}),
        (f"{SYNCED}; fsync a", {"a": {2, 3}, "b": {3, None, 6}}),
        (f"{SYNCED}; exchange a b; fsync .", {"a": {6}, "b": {3}}),
        ("creat a; ---; unlink a", {"a": {2, None}, "b": {None}}),
        ("creat a; ---; unlink a; fsync .", {"a": {None}, "b": {None}}),
    ],
)
def test_a_name_is_what_it_was_at_the_latest_barrier_or_later(operations: str, expected: dict[str, set[int]]) -> None:
    found = bound(operations)
    assert {name: found.stands_for(at(name)) for name in expected} == expected
    assert {name: found.inodes(name) for name in expected} == {name: expected[name] - {None} for name in expected}


def test_what_has_started_and_not_returned_may_be_there_and_settles_nothing() -> None:
    assert bound("creat a; sync; unlink a", is_last_running=True).stands_for(at("a")) == {2, None}
    assert bound("creat a; fsync .", is_last_running=True).stands_for(at("a")) == {2, None}


MOVED = "mkdir D; creat D/a; ---; rename D E; creat E/b"


def test_a_directory_takes_its_entries_along_under_each_name_that_it_can_have() -> None:
    found = bound(MOVED)
    assert found.inodes("D/a") == found.inodes("E/a") == {3}
    assert found.inodes("D/b") == found.inodes("E/b") == {5}
    assert found.inodes("F/a") == found.inodes("D/c") == frozenset()
    settled = bound(f"{MOVED}; fsync .")
    assert settled.inodes("D/b") == frozenset()
    assert settled.inodes("E/b") == {5}


def test_a_path_is_an_entry_of_each_directory_that_can_be_above_it() -> None:
    found = bound("mkdir D; creat D/a; ---; rename D E; mkdir D; creat D/a")
    assert found.directories("D") == [2, 5]
    assert found.entries("D/a") == [at("a", 2), at("a", 5)]
    assert found.entries("E/a") == [at("a", 2)]
    assert found.entries("D") == [at("D")]
    assert found.entries("F/a") == []
    assert bound("creat a; ---; unlink a; mkdir a").directories("a") == [4]


def test_the_latest_barrier_on_the_way_to_a_path_settled_it() -> None:
    found = bound("mkdir D; mkdir E; ---; creat D/a; fsync D; creat b; fsync .; creat E/c; fsync E")
    assert found.latest(["D/a"]).count == 6
    assert found.latest(["b"]).count == 6
    assert found.latest(["E/c"]).count == 8
    assert found.latest(["D/a", "E/c"]).count == 8
    assert bound("mkdir D; ---; creat D/a; fsync D; creat b").latest(["D/a"]).count == 3
    assert bound("mkdir D; ---; creat D/a; fsync D; creat b").latest(["b"]).count == 1


@pytest.mark.parametrize(
    ("operations", "name", "inode", "expected"),
    [
        ("creat a; ---; sync", "a", 2, True),
        ("creat a; ---; link a b", "a", 2, True),
        ("creat a; ---; link a b", "b", 2, False),
        ("creat a; ---; rename a b", "a", 2, False),
        ("creat a; ---; rename a b; fsync .", "b", 2, True),
        ("creat a; ---; link a b; unlink b; fsync .", "a", 2, True),
        ("creat a", "a", 2, True),
        ("creat a; unlink a", "a", 2, True),
    ],
)
def test_the_only_entry_of_a_file(operations: str, name: str, inode: int, expected: bool) -> None:
    assert bound(operations).is_only_entry(at(name), inode) == expected


def certain(found: Bindings, name: str) -> int | None:
    barrier = found.certain(at(name))
    return barrier.count if barrier else None


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("creat a", None),
        ("creat a; fsync a", None),
        ("creat a; fsync .", 2),
        ("creat a; fsync .; sync", 2),
        ("creat a; ---; sync", 1),
        ("creat a; ---; creat b; rename b a; fsync .", 1),
        ("creat a; ---; unlink a; sync; creat a; sync", 5),
        ("creat a; fsync .; unlink a", None),
    ],
)
def test_an_entry_is_certain_since_the_first_barrier_that_it_survives(operations: str, expected: int | None) -> None:
    """A name that is replaced is there all the time, and one that was removed in between is not."""
    assert certain(bound(operations), "a") == expected


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("creat a; ---; unlink a", None),
        ("creat a; ---; unlink a; fsync .", 3),
        ("creat a; ---; unlink a; fsync .; sync", 3),
        ("creat a; ---; unlink a; fsync .; creat a", None),
        ("creat a; ---; unlink a; fsync .; creat a; unlink a; sync", 6),
        ("creat a; ---; rename a b; sync", 3),
        ("creat b; ---; sync", None),
        ("creat a; unlink a; ---; sync", 2),
        ("creat a; unlink a; sync", 3),
    ],
)
def test_an_entry_is_gone_only_if_it_once_existed(operations: str, expected: int | None) -> None:
    barrier = bound(operations).gone(at("a"))
    assert (barrier.count if barrier else None) == expected


@pytest.mark.parametrize(
    ("operations", "path", "expected"),
    [
        ("mkdir D; creat D/a", "D/a", None),
        ("mkdir D; creat D/a; fsync D", "D/a", 3),
        ("mkdir D; creat D/a; fsync D", "D", None),
        ("mkdir D; creat D/a; fsync .", "D/a", None),
        ("mkdir D; creat D/a; fsync .", "D", 3),
        ("mkdir D; creat D/a; fsync D; fsync .", "D/a", 4),
        ("mkdir D; ---; creat D/a; fsync D; fsync .", "D/a", 3),
        ("creat a; sync", "c", None),
        ("mkdir D; creat D/a; ---; rename D E; mkdir D", "D/a", None),
        ("mkdir D; creat D/a; ---; rename D E; mkdir D; creat D/a; fsync D", "D/a", 6),
    ],
)
def test_a_path_is_promised_if_its_name_is_in_every_directory_that_can_be_above(
    operations: str, path: str, expected: int | None
) -> None:
    barrier = bound(operations).promised(path)
    assert (barrier.count if barrier else None) == expected


def test_the_bindings_of_a_history_are_computed_once() -> None:
    workload = workload_of(SYNCED)
    assert bindings_of(History(workload, 4, 4)) is bindings_of(History(workload, 4, 4))
    assert bindings_of(History(workload, 4, 4)) is not bindings_of(History(workload, 4, 3))
