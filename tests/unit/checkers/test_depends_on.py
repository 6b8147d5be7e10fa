"""A checker says on which part of a history it depends, and is not asked again for another. So this must be true."""

from collections import defaultdict

import pytest
from hypothesis import given, settings

from postcrash.checkers import CHECKERS, PRACTICE, CannotTellError, Checker
from postcrash.checkers.checker import NotInShell, Stage
from postcrash.model import History, Observation, Workload, parse_workload
from postcrash.model.observation import FsckResult, Usage

from .test_no_false_alarms import workloads

pytestmark = pytest.mark.slow

Answer = tuple[object, bool]


def answer(checker: Checker, history: History, observation: Observation) -> Answer:
    try:
        return checker.check(history, observation), checker.is_relevant(history, observation)
    except CannotTellError as error:
        return str(error), False


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
    class Forgetful:
        name, statement, in_shell = "forgetful", "", NotInShell("nobody asks")
        depends_on: tuple[str, ...] = ()
        looks_at: tuple[str, ...] = ()
        needs: Stage = "boot"

        def check(self, history: History, observation: Observation) -> None:
            return None

        def is_relevant(self, history: History, observation: Observation) -> bool:
            return bool(getattr(history, field) == 1)

    alike = answers(Forgetful(), parse_workload("creat a\ncreat b", "two"))
    assert max(len(found) for found in alike) == 2
