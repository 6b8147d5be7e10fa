"""A checker says on which part of a history it depends, and is not asked again for another. So this must be true."""

from collections import defaultdict

import pytest
from hypothesis import given, settings

from postcrash.checkers import CHECKERS, PRACTICE, Checker
from postcrash.model import History, Observation, Workload, parse_workload
from postcrash.model.judge import CannotTellError, Opinion, holds
from postcrash.model.observation import FsckResult, Usage

from .test_no_false_alarms import workloads

pytestmark = pytest.mark.slow

Answer = Opinion | str


def answer(checker: Checker, history: History, observation: Observation) -> Answer:
    try:
        return checker.examine(history, observation)
    except CannotTellError as error:
        return str(error)


def answers(checker: Checker, workload: Workload) -> list[set[Answer]]:
    """For each tree, all answers at instants that the checker treats alike."""
    count = len(workload.operations)
    instants = [(started, returned) for returned in range(count + 1) for started in (returned, returned + 1)]
    found: dict[tuple[int, ...], set[Answer]] = defaultdict(set)
    for started, returned in instants:
        if started <= count:
            history = History(workload, started, returned)
            for number, tree in enumerate(history.trees):
                key = (number, *(getattr(history, field) for field in checker.depends_on))
                found[key].add(
                    answer(
                        checker,
                        history,
                        Observation(0, tree, klog_whole=True, fsck=FsckResult(0, ""), used=Usage("", 0)),
                    )
                )
    return list(found.values())


@pytest.mark.parametrize("checker", [*CHECKERS, *PRACTICE], ids=lambda checker: checker.name)
@settings(max_examples=20, deadline=None)
@given(workloads())
def test_what_it_does_not_depend_on_makes_no_difference(checker: Checker, workload: Workload) -> None:
    assert {len(alike) for alike in answers(checker, workload)} == {1}


USED_AGAIN = "creat b\nwrite b 0 10\nunlink b\nsync\ncreat b\nwrite b 0 10\nunlink b\nfsync .\nmkdir b\n"
"""What a name can stand for depends on which barriers had returned."""


@pytest.mark.parametrize("checker", [*CHECKERS, *PRACTICE], ids=lambda checker: checker.name)
def test_a_name_that_is_used_again(checker: Checker) -> None:
    assert {len(alike) for alike in answers(checker, parse_workload(USED_AGAIN, "used again"))} == {1}


@pytest.mark.parametrize("field", ["started", "returned"])
def test_this_test_would_notice(field: str) -> None:
    class Forgetful(Checker):
        name, statement = "forgetful", ""
        depends_on: tuple[str, ...] = ()

        def examine(self, history: History, observation: Observation) -> Opinion:
            return holds(relevant=getattr(history, field) == 1)

    alike = answers(Forgetful(), parse_workload("creat a\ncreat b", "two"))
    assert max(len(found) for found in alike) == 2
