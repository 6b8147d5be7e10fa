"""Which operations had started and which had returned."""

import pytest

from postcrash.model import History, parse_workload, simulate

WORKLOAD = parse_workload("creat A\n---\nappend A 1\nfsync A", "w")


@pytest.mark.parametrize(("started", "returned"), [(0, 0), (1, 0), (1, 1), (2, 1), (3, 2), (3, 3)])
def test_operations(started: int, returned: int) -> None:
    history = History(WORKLOAD, started, returned)
    assert history.returned_operations == WORKLOAD.operations[:returned]
    assert history.in_progress == (WORKLOAD.operations[returned] if started > returned else None)
    assert list(history.trees) == simulate(WORKLOAD)


@pytest.mark.parametrize(("started", "returned"), [(0, 1), (2, 0), (4, 3), (4, 4), (-1, -1), (0, -1)])
def test_what_cannot_be(started: int, returned: int) -> None:
    with pytest.raises(ValueError, match=f"started={started}, returned={returned} of 3"):
        History(WORKLOAD, started, returned)


def test_possible_trees() -> None:
    history = History(WORKLOAD, 2, 1)
    assert history.possible_trees(0) == history.trees[:3]
    assert history.possible_trees(1) == history.trees[1:3]
    assert history.possible_trees(2) == history.trees[2:3]
    for since in (-1, 3):
        with pytest.raises(ValueError, match=f"since={since}"):
            history.possible_trees(since)


def test_trees_are_simulated_once() -> None:
    assert History(WORKLOAD, 2, 1).trees is History(WORKLOAD, 3, 3).trees
