"""What a name can be after a crash: nothing that a durable change took away, and all that ever had it else."""

import pytest

from postcrash.checkers.candidates import Candidates, candidates
from postcrash.model import History, parse_workload


def possible(operations: str, *, is_last_running: bool = False) -> Candidates:
    """After all operations, which had all returned unless the last one is running. Operation k makes inode k + 1."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    count = len(workload.operations)
    return Candidates(History(workload, count, count - is_last_running))


REPLACED = "creat a; ---; creat b; rename b a"


@pytest.mark.parametrize(
    ("operations", "ever", "now"),
    [
        (REPLACED, [2, 3], [2, 3]),
        (f"{REPLACED}; fsync .", [2, 3], [3]),
        (f"{REPLACED}; fsync a", [2, 3], [2, 3]),
        (f"{REPLACED}; unlink a; fsync .", [2, 3], []),
        (f"{REPLACED}; unlink a; fsync .; creat a", [2, 3, 7], [7]),
        ("creat b", [], []),
    ],
)
def test_a_durable_change_takes_a_name_from_those_before(operations: str, ever: list[int], now: list[int]) -> None:
    known = possible(operations)
    assert [*known.ever("a")] == ever
    assert [*known.now("a")] == now


def test_an_fsync_that_is_running_takes_nothing_away() -> None:
    assert [*possible(f"{REPLACED}; fsync .", is_last_running=True).now("a")] == [2, 3]


def test_each_candidate_has_its_whole_past() -> None:
    known = possible("creat a; append a 100; truncate a 0; sync; setxattr a user.x y; truncate a 7")
    (past,) = known.now("a").values()
    assert past == known.ever("a")[2]
    assert (past.size, past.xattrs) == (100, {("user.x", "79")})


def test_nothing_is_taken_away_before_recording_began() -> None:
    workload = parse_workload("creat a\nunlink a\n---\ncreat b", "case")
    assert [*Candidates(History(workload, 2, 1)).now("a")] == [2]
    assert [*Candidates(History(workload, 2, 2)).now("a")] == []


def test_below_a_directory_that_must_be_gone_any_name_can_be_all_it_ever_was() -> None:
    """Whoever finds the directory has a fault already, and nobody can tell which one it is."""
    known = possible("mkdir D; creat D/a; ---; unlink D/a; rmdir D; fsync .")
    assert [*known.now("D/a")] == [*known.ever("D/a")] == [3]
    assert [*known.now("D")] == []


def test_a_name_is_gone_if_it_was_taken_away_for_good() -> None:
    assert possible("creat a; ---; unlink a; fsync .").is_gone("a")
    assert not possible("creat a; ---; unlink a").is_gone("a")
    assert not possible("creat a; ---; unlink a; fsync .").is_gone("b")
    assert possible("mkdir D; creat D/a; ---; unlink D/a; fsync D").is_gone("D/a")
    assert not possible("mkdir D; creat D/a; ---; unlink D/a; fsync .").is_gone("D/a")


def test_a_message_says_since_when_a_name_is_settled() -> None:
    assert possible(f"{REPLACED}; fsync .").settled("a") == "fsync . (operation 4) had returned"
    assert possible(REPLACED).settled("a") == "the set-up was durable"


def test_the_candidates_of_a_history_are_computed_once() -> None:
    workload = parse_workload("creat a\nsync", "case")
    assert candidates(History(workload, 2, 2)) is candidates(History(workload, 2, 2))
    assert candidates(History(workload, 2, 2)) is not candidates(History(workload, 2, 1))
