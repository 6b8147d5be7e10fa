"""Litmus table of P4."""

from collections.abc import Callable

import pytest

from postcrash.model import Entry, History, Observation, Tree, Verdict
from postcrash.model.judge import UNTESTED, Opinion, violated
from postcrash.properties import Property
from postcrash.properties.family import family
from postcrash.properties.p4_safe_new_file_flush import SafeNewFileFlush

P4 = SafeNewFileFlush()

# set-up, operations, names after the crash, holds, relevant
ROWS = [
    ("", "creat a; fsync a", "a", True, True),
    ("", "creat a; fsync a", "", False, True),
    ("", "creat a; fsync a", "a/", False, True),
    ("", "creat a; fdatasync a", "", False, True),
    ("", "creat a; mmapwrite a 0 10; msync a", "", False, True),
    # P4 does not judge contents.
    ("", "creat a; append a 10; fsync a", "a", True, True),
    # No flush of a new file
    ("", "creat a", "", True, False),
    ("creat a", "append a 10; fsync a", "", True, False),
    ("", "creat a; sync", "", True, False),
    ("", "creat a; write-osync a 0 10", "", True, False),
    ("creat o", "creat a; fsync o", "", True, False),
    ("", "creat a; fsync .", "", True, False),
    ("", "mkdir D; fsync D", "", True, False),
    # Names that appear and disappear
    ("", "creat a; fsync a; unlink a", "", True, False),
    ("", "creat a; fsync a; rename a b", "", True, False),
    ("", "creat a; rename a b; fsync b", "", True, False),
    ("mkdir D", "creat D/a; fsync D/a; rename D E", "", True, False),
    ("mkdir D", "rename D E; creat E/a; fsync E/a", "E/ E/a", True, True),
    ("mkdir D", "rename D E; creat E/a; fsync E/a", "D/ D/a", True, True),
    ("mkdir D", "rename D E; creat E/a; fsync E/a", "D/", False, True),
    ("mkdir D", "rename D E; creat E/a; fsync E/a", "E/", False, True),
    ("mkdir D; mkdir F", "rename D E; creat E/a; fsync E/a", "D/ F/ F/a", False, True),
    ("mkdir D", "creat a; link a D/l; fsync D/l", "D/ D/l", False, True),
    ("mkdir D", "creat a; link a D/l; fsync a", "a D/", True, True),
    # Each flushed file counts, and only flushed files do
    ("", "creat a; creat b; fsync b", "b", True, True),
    ("", "creat a; fsync a; creat b; fsync b", "a", False, True),
]


@pytest.mark.parametrize(("setup", "operations", "tree", "holds", "relevant"), ROWS)
def test_litmus(
    judge: Callable[[Property, str, str, str], Opinion],
    setup: str,
    operations: str,
    tree: str,
    holds: bool,
    relevant: bool,
) -> None:
    judgement = judge(P4, setup, operations, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (holds, relevant), judgement.message


def test_only_a_flush_that_had_returned_counts() -> None:
    (workload,) = family(("litmus", "", "creat a; fsync a; unlink a"))
    empty = Tree([Entry(".", "dir")])
    assert P4.examine(History(workload, 2, 1), Observation(0, empty)) == UNTESTED
    assert P4.examine(History(workload, 2, 2), Observation(0, empty)) == violated(
        "fsync a (operation 2) had returned, but a is missing"
    )
    assert P4.examine(History(workload, 3, 2), Observation(0, empty)) == UNTESTED
