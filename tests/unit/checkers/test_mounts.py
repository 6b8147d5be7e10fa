"""The mounts checker: a canary for each way in which reading fails, and states that are fine."""

import pytest

from postcrash.checkers.mounts import Mounts
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload
from postcrash.model.judge import CannotTellError, violated

HISTORY = History(parse_workload("creat a", "litmus"), 1, 1)
ROOT = Entry(".", "dir")


def test_what_mounts_and_can_be_read_is_fine() -> None:
    stale = Entry("a", "file", size=10, segments=(Segment(0, 10, "stale"),))
    assert Mounts().examine(HISTORY, Observation(0, Tree([ROOT, stale]))).verdict is Verdict.HOLDS


def test_a_tree_that_nobody_looked_at_is_not_in_order() -> None:
    with pytest.raises(CannotTellError, match="not looked at"):
        Mounts().examine(HISTORY, Observation(0, Tree()))


@pytest.mark.parametrize(
    ("observation", "message", "path"),
    [
        (Observation(117, Tree()), "mount failed with EUCLEAN (Structure needs cleaning)", ""),
        (Observation(4000, Tree()), "mount failed with errno 4000 (Unknown error 4000)", ""),
        (
            Observation(5, Tree(), helper="/myfs: it ends with status 1: bad magic"),
            "mount failed with EIO (Input/output error): /myfs: it ends with status 1: bad magic",
            "",
        ),
        (Observation(0, Tree([ROOT]), aged=".aged/1 is gone"), "of the files that aged the image, .aged/1 is gone", ""),
        (Observation(0, Tree([Entry(".", "dir", error=5)])), ". cannot be read: EIO (Input/output error)", "."),
        (
            Observation(0, Tree([ROOT, Entry("a", "other", error=116)])),
            "a cannot be read: ESTALE (Stale file handle)",
            "a",
        ),
        (
            Observation(
                0,
                Tree([ROOT, Entry("a", "file", size=9, segments=(Segment(0, 4, "zero"), Segment(4, 9, "error:5")))]),
            ),
            "a cannot be read from byte 4 to 9: EIO (Input/output error)",
            "a",
        ),
    ],
)
def test_what_fails_is_found(observation: Observation, message: str, path: str) -> None:
    assert Mounts().examine(HISTORY, observation) == violated(message, path)
