"""A judge of ours is undecided where it could not look, and never raises."""

import pytest

from postcrash.model import Entry, FsckResult, History, Observation, Tree, Verdict, parse_workload
from postcrash.model.judge import CannotTellError, Opinion, RecoveryJudge, Stage, holds, undecided, violated

HISTORY = History(parse_workload("creat a", "w"), 1, 1)
ROOT = Entry(".", "dir")
UNREAD = Tree([ROOT, Entry("a", "file", error=5)])
NOT_MOUNTED = Observation(5, Tree())
BOOT_STOPPED = Observation(0, Tree([ROOT]), repair=FsckResult(4, ""))


class Fake(RecoveryJudge):
    """A judge with one answer."""

    name = "fake"

    def __init__(self, answer: Opinion | Exception, needs: Stage = "tree") -> None:
        self.answer, self.needs = answer, needs

    def examine(self, history: History, observation: Observation) -> Opinion:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def check(answer: Opinion | Exception, observation: Observation, needs: Stage = "tree") -> Opinion:
    return Fake(answer, needs).check(HISTORY, observation)


@pytest.mark.parametrize("answer", [holds(), violated("a is missing", "a")])
@pytest.mark.parametrize(
    ("needs", "observation", "reason"),
    [
        ("tree", Observation(0, Tree()), "the tree of a crash state was not looked at"),
        ("tree", NOT_MOUNTED, "a crash state does not mount (errno 5)"),
        ("mount", NOT_MOUNTED, "a crash state does not mount (errno 5)"),
        ("boot", BOOT_STOPPED, "the boot stops at exit status 4 of the program before the mount"),
        ("tree", BOOT_STOPPED, "the boot stops at exit status 4 of the program before the mount"),
    ],
)
def test_a_recovery_that_did_not_come_far_enough_is_undecided(
    answer: Opinion, needs: Stage, observation: Observation, reason: str
) -> None:
    assert check(answer, observation, needs) == undecided(reason)


@pytest.mark.parametrize(
    ("needs", "observation"), [("anything", BOOT_STOPPED), ("boot", NOT_MOUNTED), ("mount", Observation(0, Tree()))]
)
def test_a_recovery_that_came_far_enough_is_examined(needs: Stage, observation: Observation) -> None:
    assert check(violated("bad"), observation, needs) == violated("bad")


def test_a_judge_that_raises_is_undecided() -> None:
    seen = Observation(0, Tree([ROOT]))
    assert check(CannotTellError("the log may lack lines"), seen) == undecided(
        "fake cannot tell: the log may lack lines"
    )
    assert check(KeyError("a"), seen) == undecided("fake failed: KeyError('a')")


def test_a_tree_that_was_read_in_part_never_holds() -> None:
    seen = Observation(0, UNREAD)
    opinion = check(holds(), seen)
    assert (opinion.verdict, opinion.relevant) == (Verdict.UNDECIDED, True)
    assert opinion.message == "in a crash state a cannot be read: EIO (Input/output error)"
    assert check(violated("bad"), seen) == violated("bad")
    assert check(holds(), seen, "mount") == holds()
